/**
 * Messaging servers of other projects, made from their published sources. What happens is decided
 * by the end of the number: 463 and 404 are refused by WhatsApp, 500 fails without a word of what
 * became of the message, 503 has no session, 999 hangs up, 131 is given up later; of 102 wuzapi
 * only hears that it was delivered.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fetch } from './http.ts';
import { receivedBody } from './received-body.ts';

// biome-ignore lint/suspicious/noExplicitAny: a fake looks into what it is sent field by field
type Body = any;

export interface MessagingServer {
  readonly url: string;
  /** All well-formed requests to send, also refused ones. */
  readonly asked: readonly Body[];
  /** SHA-256 of the audio that reached people, by message id. */
  readonly sent: ReadonlyMap<string, string>;
  close(): Promise<void>;
}

interface Setting {
  readonly apiKey: string;
  /** Where events go, token and all. */
  readonly webhook: () => string;
}

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly body: Body;
  answer(status: number, body: object): void;
  /** Breaks the connection off. */
  cut(): void;
  took(id: string, audio: Buffer): void;
  asked(body: Body): void;
  post(type: string, event: string): Promise<unknown>;
}

async function start(
  { webhook }: Setting,
  handle: (exchange: Exchange) => (() => Promise<unknown>) | undefined,
): Promise<MessagingServer> {
  const asked: Body[] = [];
  const sent = new Map<string, string>();
  const telling: Promise<unknown>[] = [];
  const server = createServer(async (incoming: IncomingMessage, response: ServerResponse) => {
    const bytes = await receivedBody(incoming);
    if (bytes === undefined) return;
    const tell = handle({
      incoming,
      body: JSON.parse(bytes.toString() || '{}'),
      answer: (status, body) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
      cut: () => response.socket?.destroy(),
      asked: (body) => asked.push(body),
      took: (id, audio) => sent.set(id, createHash('sha256').update(audio).digest('hex')),
      post: (type, event) =>
        fetch(webhook(), { method: 'POST', headers: { 'content-type': type }, body: event }),
    });
    if (tell !== undefined) telling.push(tell());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    sent,
    async close() {
      await Promise.allSettled(telling);
      server.closeAllConnections();
      server.close();
    },
  };
}

const newId = (): string => `3EB0${randomBytes(9).toString('hex').toUpperCase()}`;

/** By the end of the number: what the server says when it fails. */
type Failures = Readonly<Record<string, (to: string) => string>>;
const failureFor = (failures: Failures, to: string): string | undefined =>
  Object.entries(failures).find(([end]) => to.split('@')[0]?.endsWith(end))?.[1](to);
const endsWith = (to: string, end: string): boolean => to.split('@')[0]?.endsWith(end) ?? false;

const WAHA_FIELDS = new Set(['session', 'chatId', 'file', 'reply_to', 'convert']);
const ACKS = ['ERROR', 'PENDING', 'SERVER', 'DEVICE', 'READ', 'PLAYED'];
const wahaFailures: Failures = {
  404: (to) => `2 UNKNOWN: no LID found for ${to} from server`,
  463: () => '2 UNKNOWN: server returned error 463',
  500: () => 'No sessions',
};

function wahaFault({ chatId, file, reply_to, convert }: Body): string | undefined {
  if (!/^\d+@(c\.us|g\.us|lid)$/.test(chatId)) return `2 UNKNOWN: cannot parse ${chatId}`;
  if (reply_to !== undefined && reply_to.split('_').length < 3) return 'Message id be in format';
  if (typeof file?.mimetype !== 'string' || (file.data === undefined) === (file.url === undefined)) {
    return "Cannot use 'in' operator to search for 'url' in undefined";
  }
  if (convert || file.data === undefined) return undefined;
  const isOgg = Buffer.from(file.data, 'base64').toString('latin1').startsWith('OggS');
  return isOgg ? undefined : 'the file is not Ogg';
}

/** As the exception filter passes an Error on: with the whole request after it. */
const wahaError = (message: string, body: Body): object => ({
  statusCode: 500,
  timestamp: new Date().toISOString(),
  exception: { message, code: 2, details: message, name: 'Error', stack: `Error: ${message}\n  at {}` },
  request: { path: '/api/sendVoice', method: 'POST', body, query: {}, padding: 'A'.repeat(300_000) },
  version: { version: '2026.7.2', engine: 'GOWS', tier: 'PLUS' },
});

/**
 * WAHA with the engine GOWS: devlikeapro/waha, chatting.dto.ts, AllExceptionsFilter.ts,
 * webhooks.dto.ts.
 */
export function startWaha(setting: Setting): Promise<MessagingServer> {
  return start(setting, ({ incoming, body, answer, cut, asked, took, post }) => {
    const http = (statusCode: number, message: string) => void answer(statusCode, { statusCode, message });
    if (incoming.headers['x-api-key'] !== setting.apiKey) return http(401, 'Unauthorized');
    if (incoming.url !== '/api/sendVoice') return http(404, `Cannot POST ${incoming.url}`);
    const odd = Object.keys(body).find((name) => !WAHA_FIELDS.has(name));
    if (odd !== undefined) return http(400, `property ${odd} should not exist`);
    const fault = wahaFault(body);
    if (fault !== undefined) return void answer(500, wahaError(fault, body));
    asked(body);
    const { session, chatId, file } = body;
    if (endsWith(chatId, '503')) {
      const error = 'Session status is not as expected. Try again later or restart the session';
      return void answer(422, { error, session, status: 'STARTING', expected: ['WORKING'] });
    }
    const failure = failureFor(wahaFailures, chatId);
    if (failure !== undefined) return void answer(500, wahaError(failure, body));
    const id = newId();
    took(id, Buffer.from(file.data ?? '', 'base64'));
    if (endsWith(chatId, '999')) return void cut();
    const whole = `true_${chatId}_${id}`;
    answer(201, { id: whole, timestamp: 1, from: chatId, fromMe: true, to: chatId, ack: 0, _data: {} });
    return async () => {
      for (const ack of endsWith(chatId, '131') ? [-1] : [1, 2, 3, 4]) {
        const payload = { id: whole, from: chatId, to: chatId, participant: null, fromMe: true, ack };
        const event = { event: 'message.ack', session, engine: 'GOWS', me: { id: '1@c.us' } };
        const ackName = ACKS[ack + 1];
        await post('application/json', JSON.stringify({ ...event, payload: { ...payload, ackName } }));
      }
    };
  });
}

const wuzapiFailures: Failures = {
  503: () => 'no session',
  404: (to) => `Error sending message: no LID found for ${to} from server`,
  463: () => 'Error sending message: server returned error 463',
  500: () => 'Error sending message: timed out waiting for message send response',
};

function wuzapiFault({ Phone, Audio, Seconds, ContextInfo = {} }: Body): string | undefined {
  const faults: Readonly<Record<string, boolean>> = {
    'missing Phone in Payload': !Phone,
    'missing Audio in Payload': !Audio,
    'could not parse Phone': !/^\d+(@(s\.whatsapp\.net|g\.us|lid))?$/.test(Phone),
    'missing Participant in ContextInfo':
      (ContextInfo.StanzaId === undefined) !== (ContextInfo.Participant === undefined),
    'could not decode Payload': Seconds !== undefined && !Number.isInteger(Seconds),
    'audio must be base64 (data:audio/) or valid HTTP URL': !/^(data:audio\/\w+;base64,|https?:)/.test(Audio),
  };
  return Object.keys(faults).find((words) => faults[words]);
}

/**
 * wuzapi: asternic/wuzapi, handlers.go (SendAudio, Respond), helpers.go (callHook), wmiau.go
 * (events.Receipt).
 */
export function startWuzapi(setting: Setting): Promise<MessagingServer> {
  return start(setting, ({ incoming, body, answer, cut, asked, took, post }) => {
    const fail = (code: number, error: string) => void answer(code, { code, error, success: false });
    if (incoming.headers.token !== setting.apiKey) return fail(401, 'Unauthorized');
    if (incoming.url !== '/chat/send/audio') return fail(404, '404 page not found');
    const fault = wuzapiFault(body);
    if (fault !== undefined) return fail(400, fault);
    asked(body);
    const { Phone, Audio } = body;
    const failure = failureFor(wuzapiFailures, Phone);
    if (failure !== undefined) return fail(500, failure);
    const id = newId();
    took(id, Buffer.from(Audio.slice(Audio.indexOf(',') + 1), 'base64'));
    if (endsWith(Phone, '999')) return void cut();
    answer(200, { code: 200, data: { Details: 'Sent', Id: id, Timestamp: 1 }, success: true });
    return async () => {
      const event = { Chat: Phone, Sender: Phone, IsGroup: false, MessageIDs: [id], Type: '' };
      // First one from the account's own phone, which says nothing of the recipient.
      const read = endsWith(Phone, '102') ? [] : [['Read', false]];
      for (const [state, IsFromMe] of [['Read', true], ['Delivered', false], ...read]) {
        const jsonData = JSON.stringify({ type: 'ReadReceipt', state, event: { ...event, IsFromMe } });
        const form = new URLSearchParams({ jsonData, token: setting.apiKey, userID: '1' });
        await post('application/x-www-form-urlencoded', form.toString());
      }
    };
  });
}
