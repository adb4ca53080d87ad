/** A request to WhatsApp's server, with its refusals as errors for callers. */

import type { Agent } from 'node:https';
import type { UserFacingSocketConfig } from 'baileys';
import { GatewayError, type GatewayErrorCode } from 'soundpost-contract/gateway-errors';
import type { Outbound } from 'soundpost-outbound/outbound';
import { z } from 'zod';

/** Baileys' `DisconnectReason.connectionClosed`. */
const CONNECTION_CLOSED = 428;

/** Baileys puts the server's code into `data`, and its own into the status of the Boom error. */
const Refusal = z.union([
  // The WebSocket's close code (RFC 6455, 7.4): Baileys rejects pending requests with it.
  z.number().transform(() => CONNECTION_CLOSED),
  z.object({ data: z.number().positive() }).transform(({ data }) => data),
  z.object({ output: z.object({ statusCode: z.number() }) }).transform(({ output }) => output.statusCode),
]);

/** The error thrown instead of network_refused, by the server's code. */
type Meanings = Readonly<Record<number, readonly [code: GatewayErrorCode, message: string]>>;

/** Connection faults, as Baileys reports them to pending requests. */
const connectionFaults: Meanings = {
  408: ['network_refused', 'WhatsApp did not answer in time'],
  [CONNECTION_CLOSED]: ['not_connected', 'the connection to WhatsApp ended'],
  429: ['rate_limited', 'WhatsApp asks to slow down'],
};

const notInGroup = ['group_not_found', 'groupJid: the instance is in no group with this JID'] as const;

/** Refusals about a group: 401 not an admin, 403 not a member, 404 no such group. */
export const groupMeanings: Meanings = {
  401: ['network_refused', 'groupJid: only admins of the group may do this'],
  403: notInGroup,
  404: notInGroup,
  // Not the address of a group.
  400: notInGroup,
};

/** @param what completes "WhatsApp refused to …" */
export async function asked<T>(what: string, request: Promise<T>, meanings: Meanings = {}): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof GatewayError) {
      throw error;
    }
    const code = Refusal.safeParse(error).data;
    const meaning = code === undefined ? undefined : (meanings[code] ?? connectionFaults[code]);
    const [shown, message] = meaning ?? ['network_refused', `WhatsApp refused to ${what}`];
    throw new GatewayError(shown, message, { cause: error });
  }
}

// Baileys makes its requests itself. Their connections get the same checks as all others that an
// account's server can cause.

type ServiceAgents = Awaited<ReturnType<Outbound['service']>>;

/** For the WebSocket, uploads and all fetches. */
export async function guardedRequests(
  outbound: Pick<Outbound, 'service'>,
): Promise<Pick<UserFacingSocketConfig, 'agent' | 'fetchAgent' | 'options'>> {
  const service = await outbound.service();
  // Baileys' type asks for https.Agent but uses only what all agents have.
  const agent = service.agent as Agent;
  return { agent, fetchAgent: agent, options: fetchOptions(service) };
}

/** For fetch. Node's types of a dispatcher come from another version of undici. */
export function fetchOptions({ dispatcher }: ServiceAgents): RequestInit {
  return { dispatcher } as unknown as RequestInit;
}
