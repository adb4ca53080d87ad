/**
 * A Bot API server: one bot, the chats that a test gives it, and the answers of the real one, word for word as
 * tdlib/telegram-bot-api (Client.cpp) makes them. It takes the requests that bot-api-requests.ts knows and no others.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fetch } from 'soundpost-testing/http';
import { receivedBody } from 'soundpost-testing/received-body';
import { type Method, methods, type Request } from './bot-api-requests.ts';

/** A chat as #chat has it, and what the server knows of it besides. */
export interface FakeChat {
  readonly id: number;
  readonly type: 'private' | 'group' | 'supergroup' | 'channel';
  readonly first_name?: string;
  readonly last_name?: string;
  readonly title?: string;
  readonly username?: string;
  /** What a send there is refused with, such as `Forbidden: bot was blocked by the user`. */
  refuses?: string;
  /** The supergroup that this group is now. */
  upgradedTo?: number;
  readonly administrators?: readonly { status: 'creator' | 'administrator'; user: FakeUser }[];
  /** Whether the bot may invite. Default true. */
  readonly lets?: boolean;
}

export interface FakeUser {
  readonly id: number;
  readonly is_bot: boolean;
  readonly first_name: string;
}

export interface FakeMessage {
  readonly chatId: number;
  readonly message_id: number;
  readonly method: 'sendVoice' | 'sendMessage';
  readonly request: Request<'sendVoice'> | Request<'sendMessage'>;
  /** After an edit. */
  text?: string;
}

/** What happens to a request, once: an answer of another kind, or none at all. */
export interface Mishap {
  readonly method: Method;
  /** Refuses it with these words. */
  readonly refuse?: { code: number; description: string; parameters?: Record<string, number> };
  /** The connection breaks before or after the request had its effect. */
  readonly lose?: 'before' | 'after';
}

const MAX_UPLOAD_BYTES = 50 * 1024 * 1024;
const MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024;

class ApiError extends Error {
  readonly code: number;
  readonly parameters: Record<string, number> | undefined;
  constructor(code: number, description: string, parameters?: Record<string, number>) {
    super(description);
    this.code = code;
    this.parameters = parameters;
  }
}

export interface FakeFile {
  readonly bytes: Buffer;
  /** What the server says that it has, if not `bytes`. */
  readonly size?: number;
}

export async function startFakeBotApi(token = '7001:AAH-fake-token_of_the_tests'): Promise<FakeBotApi> {
  const fake = new FakeBotApi(token);
  await fake.listen();
  return fake;
}

export class FakeBotApi {
  readonly bot = { id: 7001, is_bot: true, first_name: 'Soundpost', username: 'soundpost_test_bot' };
  readonly chats = new Map<number, FakeChat>();
  readonly messages: FakeMessage[] = [];
  readonly files = new Map<string, FakeFile>();
  /** Method and parameters of each request that it understood. */
  readonly requests: {
    readonly method: Method;
    readonly parameters: Readonly<Record<string, unknown>>;
    readonly atMs: number;
  }[] = [];
  /** Requests that are none of the Bot API; a test expects this to be empty. */
  readonly faults: string[] = [];
  readonly mishaps: Mishap[] = [];
  /** Called when a request to send has arrived. */
  onArrived: (() => void) | undefined;
  /** Called when a send has had its effect, before it is answered. */
  onSent: ((message: FakeMessage) => Promise<void> | void) | undefined;
  /** With --local: files are named by their absolute path in this folder. */
  localFolder: string | undefined;
  isRevoked = false;
  webhook: Request<'setWebhook'> | undefined;
  readonly #token: string;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #updates: { update_id: number; [kind: string]: unknown }[] = [];
  readonly #slowed = new Map<number, { seconds: number; untilMs: number | undefined }>();
  #nextUpdate = 100;
  #nextMessage = 1;
  /** Ends the long poll that waits. */
  #poll: ((end: 'update' | 'conflict' | 'timeout') => void) | undefined;

  constructor(token: string) {
    this.#token = token;
  }

  get url(): string {
    return `http://${this.allow}`;
  }

  /** `host:port` for OUTBOUND_ALLOW. */
  get allow(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get token(): string {
    return this.#token;
  }

  /** The part of the token that nobody may see. */
  get secret(): string {
    return this.#token.slice(this.#token.indexOf(':') + 1);
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  person(id: number, first_name: string, more: Partial<FakeChat> = {}): FakeChat {
    return this.#chat({ id, type: 'private', first_name, ...more });
  }

  group(id: number, title: string, more: Partial<FakeChat> = {}): FakeChat {
    return this.#chat({ id, type: id < -1_000_000_000_000 ? 'supergroup' : 'group', title, ...more });
  }

  #chat(chat: FakeChat): FakeChat {
    this.chats.set(chat.id, chat);
    return chat;
  }

  /** The next send there is refused with 429; another before the time is over is a fault. */
  slowDown(chatId: number, seconds: number): void {
    this.#slowed.set(chatId, { seconds, untilMs: undefined });
  }

  /** Whether a long poll waits for the next update. */
  get isPolled(): boolean {
    return this.#poll !== undefined;
  }

  /** Another program polls for the updates of this bot. */
  interfere(): void {
    this.#poll?.('conflict');
  }

  /** How often a method was asked for. */
  count(method: Method): number {
    return this.requests.filter((request) => request.method === method).length;
  }

  /** Updates that no client has confirmed. */
  get pending(): number {
    return this.#updates.length;
  }

  /** Somebody writes; `content` is the message's other fields. @returns the message's id */
  say(chat: FakeChat, from: FakeUser, content: Record<string, unknown>, kind = 'message'): number {
    const message_id = this.#nextMessage++;
    const date = Math.floor(Date.now() / 1000);
    this.update({ [kind]: { message_id, date, chat: described(chat), from, ...content } });
    return message_id;
  }

  update(update: Record<string, unknown>): void {
    this.#updates.push({ update_id: this.#nextUpdate++, ...update });
    this.#poll?.('update');
  }

  /** Posts the oldest update as Telegram does; a 2xx confirms it. @param to the gateway, in place of the public address */
  async post(to: string, secret = this.webhook?.secret_token ?? ''): Promise<number> {
    const { pathname } = new URL(this.webhook?.url ?? to);
    const response = await fetch(`${to}${pathname}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': secret },
      body: JSON.stringify(this.#updates[0]),
    });
    if (response.ok) this.#updates.shift();
    return response.status;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = (status: number, body: object | Buffer): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
    };
    try {
      const [, kind = '', token = '', rest = ''] =
        /^\/(bot|file\/bot)([^/]*)\/(.*)$/.exec(request.url ?? '') ?? [];
      if (!/^\d+:[\w-]+$/.test(token)) throw new ApiError(404, 'Not Found');
      if (token !== this.#token || this.isRevoked) {
        // Answered before it has come, the end of the connection could overtake the answer.
        await receivedBody(request);
        throw new ApiError(401, 'Unauthorized');
      }
      if (kind !== 'bot') return answer(200, this.#download(decodeURIComponent(rest)));
      const result = await this.#call(rest, request, response);
      if (!response.destroyed) answer(200, { ok: true, result });
    } catch (error) {
      if (response.destroyed) return;
      const { code, parameters } = error instanceof ApiError ? error : new ApiError(500, '');
      const description = error instanceof Error ? error.message : 'Internal Server Error';
      answer(code, { ok: false, error_code: code, description, ...(parameters && { parameters }) });
    }
  }

  async #call(name: string, request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const method = (Object.keys(methods) as Method[]).find(
      (known) => known.toLowerCase() === name.toLowerCase(),
    );
    const body = await receivedBody(request);
    if (body === undefined) return undefined;
    if (method === undefined) {
      this.faults.push(`no method ${name}`);
      throw new ApiError(404, 'Not Found: method not found');
    }
    if (body.length > MAX_UPLOAD_BYTES + 16_384) throw new ApiError(413, 'Request Entity Too Large');
    const given = await readParameters(request, body);
    const parsed = methods[method].safeParse(given);
    if (!parsed.success) {
      this.faults.push(`${method}: ${parsed.error.message}`);
      throw new ApiError(400, `Bad Request: the fake does not take this: ${parsed.error.message}`);
    }
    this.requests.push({ method, parameters: parsed.data, atMs: performance.now() });
    if (method === 'sendVoice' || method === 'sendMessage') this.onArrived?.();
    const mishap = this.#mishap(method);
    if (mishap?.refuse) {
      const { code, description, parameters } = mishap.refuse;
      throw new ApiError(code, description, parameters);
    }
    if (mishap?.lose === 'before') {
      response.destroy();
      return undefined;
    }
    const result = await this.#perform(method, parsed.data as never, response);
    if (mishap?.lose === 'after') response.destroy();
    return result;
  }

  #mishap(method: Method): Mishap | undefined {
    const index = this.mishaps.findIndex((mishap) => mishap.method === method);
    return index < 0 ? undefined : this.mishaps.splice(index, 1)[0];
  }

  #perform(method: Method, parameters: never, response: ServerResponse): unknown {
    const handlers: { [Name in Method]: (request: Request<Name>) => unknown } = {
      getMe: () => this.bot,
      getUpdates: (request) => this.#getUpdates(request, response),
      setWebhook: (request) => {
        this.webhook = request;
        this.#poll?.('conflict');
        return true;
      },
      deleteWebhook: () => {
        this.webhook = undefined;
        return true;
      },
      getWebhookInfo: () => ({
        url: this.webhook?.url ?? '',
        has_custom_certificate: false,
        pending_update_count: this.#updates.length,
      }),
      sendMessage: (request) => {
        if (request.text === '') throw new ApiError(400, 'Bad Request: message text is empty');
        if (request.text.length > 4096) throw new ApiError(400, 'Bad Request: message is too long');
        return this.#send('sendMessage', request);
      },
      sendVoice: (request) => {
        if ((request.caption ?? '').length > 1024) {
          throw new ApiError(400, 'Bad Request: message caption is too long');
        }
        return this.#send('sendVoice', request);
      },
      sendChatAction: (request) => this.#writable(request.chat_id) && true,
      editMessageText: (request) => this.#edit(request, request.text),
      editMessageCaption: (request) => this.#edit(request, request.caption),
      getFile: ({ file_id }) => this.#getFile(file_id),
      getChat: (request) => ({
        ...described(this.#find(request.chat_id)),
        accent_color_id: 0,
        max_reaction_count: 11,
      }),
      getChatAdministrators: (request) => {
        const { type, administrators = [] } = this.#find(request.chat_id);
        if (type === 'private') {
          throw new ApiError(400, 'Bad Request: there are no administrators in the private chat');
        }
        return administrators;
      },
      exportChatInviteLink: (request) => {
        const { id, lets = true } = this.#find(request.chat_id);
        if (!lets) throw new ApiError(400, 'Bad Request: not enough rights to manage chat invite link');
        return `https://t.me/+${id}x${this.count('exportChatInviteLink')}`.replace('+-', '+');
      },
    };
    return handlers[method](parameters);
  }

  #find(chatId: number | string): FakeChat {
    const chat =
      typeof chatId === 'number'
        ? this.chats.get(chatId)
        : [...this.chats.values()].find(({ username }) => `@${username}` === chatId);
    if (chat === undefined) throw new ApiError(400, 'Bad Request: chat not found');
    return chat;
  }

  #writable(chatId: number | string): FakeChat {
    const chat = this.#find(chatId);
    if (chat.upgradedTo !== undefined) {
      throw new ApiError(400, 'Bad Request: group chat was upgraded to a supergroup chat', {
        migrate_to_chat_id: chat.upgradedTo,
      });
    }
    if (chat.refuses !== undefined) {
      throw new ApiError(chat.refuses.startsWith('Forbidden') ? 403 : 400, chat.refuses);
    }
    return chat;
  }

  async #send(method: FakeMessage['method'], request: FakeMessage['request']): Promise<unknown> {
    const chat = this.#writable(request.chat_id);
    this.#requirePatience(chat.id);
    const message: FakeMessage = { chatId: chat.id, message_id: this.#nextMessage++, method, request };
    this.messages.push(message);
    await this.onSent?.(message);
    const date = Math.floor(Date.now() / 1000);
    const about = { message_id: message.message_id, from: this.bot, chat: described(chat), date };
    if (!('voice' in request)) return { ...about, text: request.text };
    const { bytes } = request.voice;
    const voice = {
      duration: request.duration ?? 0,
      mime_type: 'audio/ogg',
      file_id: `voice-${message.message_id}`,
    };
    return {
      ...about,
      voice: { ...voice, file_unique_id: `u${message.message_id}`, file_size: bytes.length },
    };
  }

  #requirePatience(chatId: number): void {
    const slowed = this.#slowed.get(chatId);
    if (slowed === undefined) return;
    if (slowed.untilMs !== undefined && performance.now() >= slowed.untilMs) {
      this.#slowed.delete(chatId);
      return;
    }
    if (slowed.untilMs === undefined) slowed.untilMs = performance.now() + slowed.seconds * 1000;
    else this.faults.push(`a message to ${chatId} before retry_after was over`);
    throw new ApiError(429, `Too Many Requests: retry after ${slowed.seconds}`, {
      retry_after: slowed.seconds,
    });
  }

  #edit(request: { chat_id: number | string; message_id: number }, text: string): unknown {
    const { id } = this.#find(request.chat_id);
    const message = this.messages.find((one) => one.chatId === id && one.message_id === request.message_id);
    if (message === undefined) throw new ApiError(400, 'Bad Request: message to edit not found');
    const now = message.text ?? ('text' in message.request ? message.request.text : message.request.caption);
    if (now === text) {
      throw new ApiError(
        400,
        'Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message',
      );
    }
    message.text = text;
    return true;
  }

  #getFile(file_id: string): unknown {
    const file = this.files.get(file_id);
    if (file === undefined) {
      throw new ApiError(400, 'Bad Request: wrong file_id or the file is temporarily unavailable');
    }
    const file_size = file.size ?? file.bytes.length;
    if (this.localFolder === undefined && file_size > MAX_DOWNLOAD_BYTES) {
      throw new ApiError(400, 'Bad Request: file is too big');
    }
    const file_path = this.localFolder === undefined ? `voice/${file_id}` : join(this.localFolder, file_id);
    return { file_id, file_unique_id: `u-${file_id}`, file_size, file_path };
  }

  #download(path: string): Buffer {
    const file = this.files.get(path.replace(/^voice\//, ''));
    if (file === undefined) throw new ApiError(404, 'Not Found');
    return file.bytes;
  }

  async #getUpdates(
    { offset = 0, limit = 100, timeout = 0 }: Request<'getUpdates'>,
    response: ServerResponse,
  ): Promise<unknown> {
    if (this.webhook !== undefined) {
      throw new ApiError(
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
      );
    }
    this.#updates = this.#updates.filter(({ update_id }) => update_id >= offset);
    if (this.#updates.length === 0 && timeout > 0) {
      this.#poll?.('conflict');
      const { promise, resolve } = Promise.withResolvers<'update' | 'conflict' | 'timeout'>();
      this.#poll = resolve;
      const timer = setTimeout(resolve, timeout * 1000, 'timeout');
      response.on('close', () => resolve('timeout'));
      const end = await promise;
      clearTimeout(timer);
      if (this.#poll === resolve) this.#poll = undefined;
      if (end === 'conflict') {
        throw new ApiError(
          409,
          this.webhook === undefined
            ? 'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running'
            : 'Conflict: terminated by setWebhook request',
        );
      }
    }
    return this.#updates.slice(0, limit);
  }
}

function described({ id, type, first_name, last_name, title, username }: FakeChat): Record<string, unknown> {
  return JSON.parse(JSON.stringify({ id, type, first_name, last_name, title, username }));
}

/** #making-requests: JSON, or multipart/form-data where files are; there all values are texts, objects JSON. */
async function readParameters(request: IncomingMessage, body: Buffer): Promise<Record<string, unknown>> {
  const type = request.headers['content-type'] ?? '';
  if (!type.startsWith('multipart/form-data')) return body.length === 0 ? {} : JSON.parse(body.toString());
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  const parameters: Record<string, unknown> = {};
  for (const [name, value] of form) {
    if (typeof value === 'string') parameters[name] = fromText(name, value);
    else {
      const bytes = Buffer.from(await value.arrayBuffer());
      parameters[name] = { bytes, name: value.name, type: value.type };
    }
  }
  return parameters;
}

const textual = new Set(['caption', 'text']);

function fromText(name: string, value: string): unknown {
  return textual.has(name) || value.startsWith('@') ? value : JSON.parse(value);
}
