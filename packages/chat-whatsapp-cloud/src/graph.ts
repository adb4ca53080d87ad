/**
 * Requests to Meta's Graph API for one business number, with its refusals as errors for callers.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { jsonOf } from 'soundpost-base/json';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { WhatsAppCloudConnection } from 'soundpost-contract/gateway-instances';
import type { CallAnswer, CallOptions } from 'soundpost-outbound/call';
import { neverSent, OutboundRefused } from 'soundpost-outbound/errors';
import type { Outbound } from 'soundpost-outbound/outbound';
import { z } from 'zod';
import { type GraphFault, isKnown, refusal, TOKEN_EXPIRED } from './refusals.ts';

interface GraphOptions {
  readonly outbound: Pick<Outbound, 'call'>;
  /** With its version, without trailing slash. */
  readonly graphUrl: string;
  readonly connection: WhatsAppCloudConnection;
  /** Waits before the next tries of what WhatsApp limits. Default: 2 s, then 6 s. */
  readonly retryDelaysMs?: readonly number[] | undefined;
  /** Called with the sentence for callers. */
  readonly onTokenExpired: (reason: string) => void;
}

interface Question<Schema extends z.ZodType>
  extends Pick<CallOptions, 'method' | 'json' | 'form' | 'signal'> {
  /** Below the version: `{phoneNumberId}/messages`. */
  readonly path: string;
  readonly answer: Schema;
  /** A message: if its answer is lost, the error is `timeout`, since it may have been sent. */
  readonly isSend?: boolean;
}

const TIMEOUT_MS = 25_000;
/** In all 8 s of a send's 30. */
const RETRY_DELAYS_MS = [2000, 6000];

/**
 * Errors after which Meta may have done it: "API Unknown", "API Service", "Something went wrong".
 */
const UNCLEAR = new Set([1, 2, 131000, 131016]);

const Fault = z.object({ code: z.number(), message: z.string().catch(''), title: z.string().optional() });
const ErrorAnswer = z.object({
  error: Fault.extend({ error_data: z.object({ details: z.string() }).optional().catch(undefined) }),
  // The reason why a person was not blocked (error 139100).
  block_users: z
    .object({ failed_users: z.array(z.object({ errors: z.array(Fault).min(1) })).min(1) })
    .optional()
    .catch(undefined),
});

export class Graph {
  readonly #options: GraphOptions;

  constructor(options: GraphOptions) {
    this.#options = options;
  }

  /** Asks again after rate limits. Throws GatewayError only. */
  async ask<Schema extends z.ZodType>(question: Question<Schema>): Promise<z.output<Schema>> {
    const { retryDelaysMs = RETRY_DELAYS_MS } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#askOnce(question);
      } catch (error) {
        const delayMs = retryDelaysMs[attempt];
        const isLimit = error instanceof GatewayError && error.code === 'rate_limited';
        if (!isLimit || delayMs === undefined) throw error;
        const { signal } = question;
        const isOver = await wait(delayMs, false, { ...(signal && { signal }) }).catch(() => true);
        if (isOver) throw error;
      }
    }
  }

  /** Downloads what an answer of the Graph API gave an address for. Throws as `Outbound.call`. */
  async save(url: string, saveTo: NonNullable<CallOptions['saveTo']>, signal: AbortSignal): Promise<void> {
    const { status } = await this.#call({ url, method: 'GET', saveTo, signal });
    if (status !== 200) throw new Error(`the media server answered HTTP ${status}`);
  }

  #call(request: Omit<CallOptions, 'headers' | 'timeoutMs'>): Promise<CallAnswer> {
    const { outbound, connection } = this.#options;
    const headers = { authorization: `Bearer ${connection.accessToken}` };
    return outbound.call({ ...request, headers, timeoutMs: TIMEOUT_MS });
  }

  async #askOnce<Schema extends z.ZodType>(question: Question<Schema>): Promise<z.output<Schema>> {
    const { path, answer, isSend = false, ...request } = question;
    const call = await this.#call({ ...request, url: `${this.#options.graphUrl}/${path}` }).catch(
      (error: unknown) => {
        throw withoutAnswer(error, isSend);
      },
    );
    const body = jsonOf(call.text);
    if (call.status >= 200 && call.status < 300) {
      const parsed = answer.safeParse(body);
      if (parsed.success) return parsed.data;
      throw isSend ? lost() : new GatewayError('network_refused', 'WhatsApp’s answer cannot be read');
    }
    const fault = faultOf(body);
    if (isSend && isUnclear(call.status, fault)) throw lost();
    if (fault === undefined) throw withoutReason(call.status);
    const error = refusal(fault, call.retryAfterSeconds);
    if (fault.code === TOKEN_EXPIRED) this.#options.onTokenExpired(error.message);
    throw error;
  }
}

function faultOf(body: unknown): GraphFault | undefined {
  const parsed = ErrorAnswer.safeParse(body).data;
  if (parsed === undefined) return undefined;
  const { error, block_users: blocking } = parsed;
  const own = blocking?.failed_users[0]?.errors[0] ?? error;
  return { code: own.code, words: error.error_data?.details ?? own.message };
}

function isUnclear(status: number, fault: GraphFault | undefined): boolean {
  if (fault === undefined) return status >= 500 || status === 408 || status < 400;
  return UNCLEAR.has(fault.code) || (status >= 500 && !isKnown(fault.code));
}

function withoutReason(status: number): GatewayError {
  return status >= 500
    ? new GatewayError('not_connected', `WhatsApp has an outage (HTTP ${status}); try again later`)
    : new GatewayError('network_refused', `WhatsApp refused the request without a reason (HTTP ${status})`);
}

function withoutAnswer(cause: unknown, isSend: boolean): GatewayError {
  if (cause instanceof OutboundRefused) {
    const remedy = 'the address of the Graph API is not allowed; open it with OUTBOUND_ALLOW';
    return new GatewayError('network_refused', remedy, { cause });
  }
  if (neverSent(cause)) {
    return new GatewayError('not_connected', 'WhatsApp’s Graph API cannot be reached', { cause });
  }
  return isSend
    ? lost(cause)
    : new GatewayError('not_connected', 'WhatsApp did not answer; nothing was sent', { cause });
}

function lost(cause?: unknown): GatewayError {
  return new GatewayError(
    'timeout',
    'the answer of WhatsApp was lost; whether it took the message is not known until it reports a status',
    { cause },
  );
}
