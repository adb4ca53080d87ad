/**
 * The chats of one instance, asked of the messaging gateway (messaging-gateway.md "Find chats").
 */
import { jsonOf } from 'soundpost-base/json';
import { z } from 'zod';
import { ToolFailure } from './tool-answer.ts';

export interface GatewaySettings {
  /** Base address, such as `http://127.0.0.1:8081`; a path is kept. */
  readonly url: string;
  /** Name or id of the instance. */
  readonly instance: string;
  /** The instance's own token, which opens nothing else. */
  readonly token: string;
}

interface Chat {
  /** What `send_voice_message` takes as `number`. */
  readonly number: string;
  readonly name: string;
  readonly isGroup: boolean;
}

/** Of {@link ChatRecord}, what is used: newer gateways may say more. */
const Chats = z.array(z.object({ remoteJid: z.string(), pushName: z.string(), isGroup: z.boolean() }));
const Refusal = z.object({ response: z.object({ message: z.array(z.string()) }) });

/**
 * The newest first.
 * @param limit how many at most
 * @throws ToolFailure; the reason of `signal` when it aborts
 */
export async function listChats(
  { url, instance, token }: GatewaySettings,
  limit: number,
  signal: AbortSignal,
): Promise<Chat[]> {
  const path = `/chat/findChats/${encodeURIComponent(instance)}`;
  let response: Response;
  let answer: unknown;
  try {
    response = await fetch(`${url.replace(/\/+$/, '')}${path}`, {
      method: 'POST',
      headers: { apikey: token, 'Content-Type': 'application/json' },
      body: JSON.stringify({ page: 1, offset: limit }),
      // A redirect would send the token to another address.
      redirect: 'error',
      signal,
    });
    answer = jsonOf(await response.text());
  } catch (cause) {
    signal.throwIfAborted();
    const message = 'The gateway did not answer. Check that it runs, and SOUNDPOST_GATEWAY_URL.';
    throw new ToolFailure(message, { cause });
  }
  if (!response.ok) {
    const said = Refusal.safeParse(answer).data?.response.message.join('; ');
    throw new ToolFailure(`The gateway answered ${response.status}${said === undefined ? '.' : `: ${said}`}`);
  }
  const chats = Chats.safeParse(answer);
  if (!chats.success) throw new ToolFailure('The gateway did not answer with a list of chats.');
  return chats.data.map(({ remoteJid, pushName, isGroup }) => ({
    number: remoteJid,
    name: pushName,
    isGroup,
  }));
}
