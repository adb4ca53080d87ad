/** Baileys makes its requests itself; each of their connections is checked as any other that an account's server can cause. */
import type { Agent } from 'node:https';
import type { UserFacingSocketConfig } from 'baileys';
import type { Outbound } from 'soundpost-outbound/outbound';

type ServiceAgents = Awaited<ReturnType<Outbound['service']>>;

/** Of the WebSocket, of uploads and of all that is fetched. */
export async function guardedRequests(
  outbound: Pick<Outbound, 'service'>,
): Promise<Pick<UserFacingSocketConfig, 'agent' | 'fetchAgent' | 'options'>> {
  const service = await outbound.service();
  // Baileys asks for the class of https, of which it uses what all agents have.
  const agent = service.agent as Agent;
  return { agent, fetchAgent: agent, options: fetchOptions(service) };
}

/** For whatever goes through fetch. Node's own types of a dispatcher are those of another version of undici. */
export function fetchOptions({ dispatcher }: ServiceAgents): RequestInit {
  return { dispatcher } as unknown as RequestInit;
}
