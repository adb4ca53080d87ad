/**
 * Requests to the Bot API (core.telegram.org/bots/api#making-requests). The token is in the path:
 * no URL leaves this file, and nothing that is thrown holds one.
 */
import { jsonOf } from 'soundpost-base/json';
import { neverSent, OutboundRefused } from 'soundpost-outbound/errors';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { z } from 'zod';
import { Envelope } from './api-types.ts';

export const PUBLIC_SERVER = 'https://api.telegram.org';

/** Limits of the public server (core.telegram.org/bots/api#using-a-local-bot-api-server). */
export const MAX_UPLOAD_BYTES = 50 * 1024 * 1024;
const MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024;
/** Of a local server; the gateway's own limit of audio is lower. */
const MAX_LOCAL_DOWNLOAD_BYTES = 100 * 1024 * 1024;

const ANSWER_MS = 30_000;
const DOWNLOAD_MS = 60_000;

/** The server refused the request: it had no effect. */
export class Refused extends Error {
  override readonly name = 'Refused';
  /** As HTTP's. */
  readonly code: number;
  readonly retryAfterSeconds: number | undefined;
  /** The group is now the supergroup with this id. */
  readonly migratedTo: number | undefined;

  /** @param description the server's words */
  constructor(
    code: number,
    description: string,
    { retryAfterSeconds, migratedTo }: { retryAfterSeconds?: number; migratedTo?: number } = {},
  ) {
    super(description);
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
    this.migratedTo = migratedTo;
  }
}

/** No answer that can be used: the request may have had its effect, unless it never left. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  /** Whether the server may have got the request. */
  readonly maybeSent: boolean;

  constructor(maybeSent: boolean, why: string, cause?: unknown) {
    super(why, { cause });
    this.maybeSent = maybeSent;
  }
}

interface Call {
  readonly signal?: AbortSignal | undefined;
  /** Default 30 s. */
  readonly timeoutMs?: number;
  /** A file of this machine in the field `voice`. */
  readonly voice?: string;
}

type Request = Parameters<Outbound['call']>[0];
type Answer = Awaited<ReturnType<Outbound['call']>>;

/** Objects and lists travel as JSON, also in a form. */
type Fields = Readonly<Record<string, unknown>>;

export class BotApi {
  readonly #outbound: Pick<Outbound, 'call'>;
  readonly #base: string;
  readonly #token: string;

  /** @param base without trailing slash */
  constructor(outbound: Pick<Outbound, 'call'>, base: string, token: string) {
    this.#outbound = outbound;
    this.#base = base;
    this.#token = token;
  }

  /** Whether it is Telegram's own server, with its limits. */
  get isPublic(): boolean {
    return this.#base === PUBLIC_SERVER;
  }

  /** The largest file that it hands out, or that is taken of a local server. */
  get maxDownloadBytes(): number {
    return this.isPublic ? MAX_DOWNLOAD_BYTES : MAX_LOCAL_DOWNLOAD_BYTES;
  }

  /** The bot's own id: the token begins with it. */
  get ownId(): number {
    return Number(this.#token.slice(0, this.#token.indexOf(':')));
  }

  /** @throws Refused, NoAnswer; the reason of `signal` */
  async call<Schema extends z.ZodType>(
    method: string,
    parameters: Fields,
    schema: Schema,
    { signal, timeoutMs = ANSWER_MS, voice }: Call = {},
  ): Promise<z.output<Schema>> {
    const url = `${this.#base}/bot${this.#token}/${method}`;
    const file = { path: voice ?? '', name: 'voice.ogg', type: 'audio/ogg' };
    const content =
      voice === undefined ? { json: parameters } : { form: { ...formFields(parameters), voice: file } };
    return resultOf(await this.#ask({ url, method: 'POST', ...content, timeoutMs }, signal), schema);
  }

  /**
   * Fetches a file that getFile named.
   * @param path as answered by the public server: relative @throws Refused, NoAnswer
   */
  async download(path: string, file: string, signal: AbortSignal): Promise<void> {
    const encoded = path.split('/').map(encodeURIComponent).join('/');
    const { status } = await this.#ask(
      {
        url: `${this.#base}/file/bot${this.#token}/${encoded}`,
        method: 'GET',
        saveTo: { path: file, maxBytes: this.maxDownloadBytes },
        timeoutMs: DOWNLOAD_MS,
      },
      signal,
    );
    if (status >= 500) throw new NoAnswer(true, `Telegram answered ${status}`);
    if (status !== 200) throw new Refused(status, `the file was not given out (${status})`);
  }

  async #ask(request: Request, signal: AbortSignal | undefined): Promise<Answer> {
    try {
      return await this.#outbound.call({ ...request, ...(signal && { signal }) });
    } catch (error) {
      signal?.throwIfAborted();
      throw new NoAnswer(!neverSent(error), wordsFor(error), error);
    }
  }
}

function wordsFor(error: unknown): string {
  if (error instanceof OutboundRefused) {
    return 'the server in TELEGRAM_URL lies at an address that the operator has not allowed (OUTBOUND_ALLOW)';
  }
  return neverSent(error) ? 'Telegram cannot be reached' : 'Telegram did not answer';
}

function formFields(parameters: Fields): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parameters)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, typeof value === 'object' ? JSON.stringify(value) : String(value)]),
  );
}

/** A 5xx, also one with an envelope, says nothing about the effect. */
function resultOf<Schema extends z.ZodType>({ status, text }: Answer, schema: Schema): z.output<Schema> {
  const envelope = Envelope.safeParse(jsonOf(text)).data;
  if (envelope?.ok) {
    const result = schema.safeParse(envelope.result);
    if (result.success) return result.data;
    throw new NoAnswer(true, 'the answer of Telegram cannot be read', result.error);
  }
  const code = envelope?.error_code ?? status;
  if (code >= 400 && code < 500) {
    const { retry_after: retryAfterSeconds, migrate_to_chat_id: migratedTo } = envelope?.parameters ?? {};
    throw new Refused(code, envelope?.description ?? '', {
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      ...(migratedTo === undefined ? {} : { migratedTo }),
    });
  }
  throw new NoAnswer(true, `Telegram answered ${code}`);
}
