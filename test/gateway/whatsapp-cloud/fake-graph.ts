/**
 * Meta's Graph API for business numbers, at its wire: it takes the requests of graph-requests.ts and refuses all others with
 * Meta's form of errors, and posts signed webhooks as Meta does.
 */
import { createHash, createHmac, randomBytes, randomInt } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fetch } from 'soundpost-testing/http';
import { until } from 'soundpost-testing/until';
import { type GraphOperation, graphOperations } from './graph-requests.ts';

export const APP_SECRET = 'secret-of-the-app-0123456789abcdef';
export const VERIFY_TOKEN = 'verify-token-of-the-tests';
export const ACCESS_TOKEN = 'EAAtoken-of-the-tests';
export const GROUP_ID = 'Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD';

const VERSION = 'v23.0';
export const numbers = {
  own: { phoneNumberId: '106540352242922', display: '+1 555-078-3881', jid: '15550783881@s.whatsapp.net' },
  other: { phoneNumberId: '206540352242922', display: '+1 555-078-3882', jid: '15550783882@s.whatsapp.net' },
};

export interface TakenMessage {
  /** Meta's id. */
  readonly id: string;
  readonly phoneNumberId: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The voice message as uploaded. */
  readonly audio: Uint8Array | undefined;
}

/** What happens to the next send, whose answer the gateway does not get as it should. */
export type Accident =
  /** Meta has it and the connection breaks. */
  | 'lost'
  /** Meta has it, and something in between answers a page. */
  | 'page'
  /** Meta does not have it: an error of its own server. */
  | 'broken'
  /** A limit, so that it is not taken: 130429 or 131056. */
  | 130429
  | 131056
  /** Any other error of Meta's list. */
  | number;

type StatusWord = 'sent' | 'delivered' | 'read' | 'played' | 'failed';

/** Recipients to whom Meta answers 200 and then reports `failed`. */
const fates: Readonly<Record<string, readonly [code: number, title: string]>> = {
  '15550000047': [131047, 'Re-engagement message'],
  '15550000026': [131026, 'Message undeliverable'],
  '15550000027': [131026, 'Message undeliverable'],
};
export const closedWindow = '15550000047';
export const nobodyThere = '15550000026';
export const blockedByPerson = '15550000027';

class Refusal extends Error {
  readonly code: number;
  readonly status: number;
  constructor(code: number, words: string, status = 400) {
    super(words);
    this.code = code;
    this.status = status;
  }
}

export class FakeGraph {
  readonly taken: TakenMessage[] = [];
  /** Every request that was understood: name of the operation and body. */
  readonly requests: { readonly name: string; readonly body: Readonly<Record<string, unknown>> }[] = [];
  /** Consumed by the next sends, in order. */
  readonly accidents: Accident[] = [];
  readonly blocked = new Set<string>();
  expired = false;
  /** All requests, also those that were refused. */
  asked = 0;
  /** Where webhooks go; none while undefined. */
  webhookUrl: string | undefined;
  /** Statuses that follow a taken message at once. */
  follow: readonly StatusWord[] = ['sent'];
  #links = 0;
  readonly #uploads = new Map<string, Uint8Array>();
  readonly #files = new Map<string, Uint8Array>();
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  #origin = '';

  /** With its version, as GRAPH_URL. */
  get url(): string {
    return `${this.#origin}/${VERSION}`;
  }

  get outboundAllow(): string {
    return this.#origin.replace('http://', '');
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.#origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** A voice note of a person, as Meta keeps it. @returns its media id */
  keep(file: Uint8Array): string {
    const id = String(randomInt(1e12, 2e12));
    this.#files.set(id, file);
    return id;
  }

  /** Posts a change until it is taken, as Meta does. @returns how often it was posted */
  async post(field: string, value: object, phoneNumberId = numbers.own.phoneNumberId): Promise<number> {
    const metadata = { display_phone_number: '15550783881', phone_number_id: phoneNumberId };
    const change = { field, value: { messaging_product: 'whatsapp', metadata, ...value } };
    const body = JSON.stringify({
      object: 'whatsapp_business_account',
      entry: [{ id: '1', changes: [change] }],
    });
    let times = 0;
    await until(
      'the webhook is taken',
      async () => {
        times++;
        return (await this.deliver(body).catch(() => undefined)) === 200;
      },
      30_000,
    );
    return times;
  }

  /** @returns the HTTP status */
  async deliver(body: string, secret = APP_SECRET, url = this.webhookUrl ?? ''): Promise<number> {
    const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    const headers = { 'content-type': 'application/json', 'x-hub-signature-256': signature };
    return (await fetch(url, { method: 'POST', headers, body })).status;
  }

  async say(from: string, name: string, content: object, more: object = {}): Promise<string> {
    const id = newId();
    const timestamp = String(Math.floor(Date.now() / 1000));
    const message = { from, id, timestamp, ...content, ...more };
    await this.post('messages', { contacts: [{ profile: { name }, wa_id: from }], messages: [message] });
    return id;
  }

  async status(
    { id, body, phoneNumberId }: TakenMessage,
    status: StatusWord,
    errors?: object[],
  ): Promise<void> {
    const recipient = String(body.to ?? body.recipient);
    const mark = body.biz_opaque_callback_data;
    const report = {
      ...{ id, status, timestamp: String(Math.floor(Date.now() / 1000)), recipient_id: recipient },
      ...(mark === undefined ? {} : { biz_opaque_callback_data: mark }),
      ...(errors === undefined ? {} : { errors }),
    };
    await this.post('messages', { statuses: [report] }, phoneNumberId);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.asked += 1;
    const url = new URL(request.url ?? '/', this.#origin);
    const bytes = await whole(request);
    try {
      if (request.headers.authorization !== `Bearer ${ACCESS_TOKEN}` || this.expired) {
        throw new Refusal(190, 'Error validating access token: Session has expired', 401);
      }
      const file = /^\/files\/(\d+)$/.exec(url.pathname)?.[1];
      if (file !== undefined) {
        response.writeHead(200, { 'content-type': 'audio/ogg' }).end(this.#files.get(file));
        return;
      }
      const { operation, ids } = operationOf(request.method ?? '', url.pathname);
      const body = await bodyOf(operation, request, bytes);
      const query = operation.query?.safeParse(Object.fromEntries(url.searchParams));
      if (query?.success === false) throw new Refusal(100, `Invalid parameter: ${query.error.message}`);
      this.requests.push({ name: operation.name, body });
      const answer = this.#perform(operation.name, ids, body);
      if (answer === undefined) return void response.destroy();
      if (typeof answer === 'string') {
        response.writeHead(200, { 'content-type': 'text/html' }).end(answer);
        return;
      }
      json(response, 200, answer);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { code, message } = error;
      const about = { type: 'OAuthException', fbtrace_id: 'A1', error_data: { details: message } };
      json(response, error.status, { error: { message: `(#${code}) ${message}`, code, ...about } });
    }
  }

  /** @returns the answer; a page; or undefined for a connection that breaks */
  #perform(name: string, id: string, body: Readonly<Record<string, unknown>>): object | string | undefined {
    switch (name) {
      case 'number':
        return { display_phone_number: own(id).display, id };
      case 'upload': {
        const upload = String(randomInt(1e12, 2e12));
        this.#uploads.set(upload, body.file as Uint8Array);
        return { id: upload };
      }
      case 'message':
        return 'status' in body ? { success: true } : this.#send(own(id).phoneNumberId, body);
      case 'block':
      case 'unblock':
        return this.#block(name, body);
      case 'invite':
        this.#links += 1;
        return { messaging_product: 'whatsapp', invite_link: `https://chat.whatsapp.com/LINK${this.#links}` };
      case 'group':
        if (id !== GROUP_ID) throw new Refusal(100, 'Unsupported get request. Object does not exist');
        return { id, subject: 'Buyers', participants: [{ wa_id: '12025550101' }, { wa_id: '12025550102' }] };
      case 'media': {
        const file = this.#files.get(id);
        if (file === undefined) throw new Refusal(100, 'Media does not exist');
        const sha256 = createHash('sha256').update(file).digest('hex');
        return {
          url: `${this.#origin}/files/${id}`,
          mime_type: 'audio/ogg',
          sha256,
          id,
          messaging_product: 'whatsapp',
        };
      }
      default:
        throw new Refusal(100, 'Unsupported request');
    }
  }

  #send(phoneNumberId: string, body: Readonly<Record<string, unknown>>): object | string | undefined {
    const accident = this.accidents.shift();
    if (accident === 'broken') throw new Refusal(131000, 'Something went wrong', 500);
    if (typeof accident === 'number') throw new Refusal(accident, 'Rate limit hit', 429);
    const mediaId = (body.audio as { id: string } | undefined)?.id;
    const audio = mediaId === undefined ? undefined : this.#uploads.get(mediaId);
    if (mediaId !== undefined && audio === undefined) throw new Refusal(131053, 'Media upload error');
    const message: TakenMessage = { id: newId(), phoneNumberId, body, audio };
    this.taken.push(message);
    if (this.webhookUrl !== undefined) void this.#follow(message).catch(() => undefined);
    if (accident === 'lost') return undefined;
    if (accident === 'page') return '<html><body>Service</body></html>';
    const wa_id = String(body.to);
    return {
      messaging_product: 'whatsapp',
      contacts: [{ input: wa_id, wa_id }],
      messages: [{ id: message.id }],
    };
  }

  async #follow(message: TakenMessage): Promise<void> {
    const fate = fates[String(message.body.to)];
    if (fate !== undefined) {
      const [code, title] = fate;
      const errors = [{ code, title, message: title, error_data: { details: `${title}.` } }];
      await this.status(message, 'failed', errors);
      return;
    }
    for (const word of this.follow) await this.status(message, word);
  }

  #block(name: string, body: Readonly<Record<string, unknown>>): object {
    const users = body.block_users as { user: string }[];
    for (const { user } of users) {
      if (user === closedWindow) throw new Refusal(131047, 'Re-engagement required');
      if (name === 'block') this.blocked.add(user);
      else this.blocked.delete(user);
    }
    const list = users.map(({ user }) => ({ input: user, wa_id: user }));
    return {
      messaging_product: 'whatsapp',
      block_users: { [name === 'block' ? 'added_users' : 'removed_users']: list },
    };
  }
}

function own(id: string): { phoneNumberId: string; display: string } {
  const found = Object.values(numbers).find(({ phoneNumberId }) => phoneNumberId === id);
  if (found === undefined) throw new Refusal(100, 'Unsupported request. Object does not exist');
  return found;
}

function newId(): string {
  return `wamid.${randomBytes(24).toString('base64url')}`;
}

function operationOf(method: string, path: string): { operation: GraphOperation; ids: string } {
  const [, version, id = '', edge] = path.split('/');
  const isPhone = Object.values(numbers).some(({ phoneNumberId }) => phoneNumberId === id);
  const kind = isPhone ? '{Phone-Number-ID}' : /^\d+$/.test(id) ? '{Media-ID}' : '{group_id}';
  const wanted = `/${[kind, edge].filter(Boolean).join('/')}`;
  const operation = graphOperations.find((one) => one.method === method && one.path === wanted);
  if (version !== VERSION || operation === undefined) throw new Refusal(100, `Unsupported ${method} request`);
  return { operation, ids: decodeURIComponent(id) };
}

async function bodyOf(
  { body: schema, isForm = false }: GraphOperation,
  request: IncomingMessage,
  bytes: Buffer,
): Promise<Readonly<Record<string, unknown>>> {
  if (schema === undefined) return {};
  const type = request.headers['content-type'] ?? '';
  if (!type.startsWith(isForm ? 'multipart/form-data' : 'application/json')) {
    throw new Refusal(100, `Unexpected content type ${type}`);
  }
  const value = isForm ? await formOf(type, bytes) : JSON.parse(bytes.toString());
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new Refusal(100, `Invalid parameter: ${parsed.error.message}`);
  return parsed.data as Record<string, unknown>;
}

async function formOf(type: string, bytes: Buffer): Promise<Record<string, unknown>> {
  const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData();
  const file = form.get('file');
  const content = file instanceof File ? new Uint8Array(await file.arrayBuffer()) : file;
  return { ...Object.fromEntries(form), file: content };
}

async function whole(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
