/** Two replicas of the gateway of the first edition, and the XMPP server that they know. */
import { join } from 'node:path';
import type { Json } from '../../client.ts';
import { freePorts } from '../../ports.ts';
import type { RunningProcess } from '../../service.ts';
import { until } from '../../until.ts';
import { type GatewayAnswer, type GatewayCall, gatewayCall } from '../gateway-call.ts';
import type { KeyedSend } from '../manifest.ts';
import { openXmppServer, type XmppServer } from '../outside.ts';
import type { FirstEdition } from './processes.ts';

const PRELOAD = join(import.meta.dirname, '../fake-baileys-preload.ts');

interface Replica {
  readonly process: RunningProcess;
  /** With the gateway's own key. */
  readonly call: GatewayCall;
}

export interface Gateways {
  readonly xmppServer: XmppServer;
  readonly whatsappLog: string;
  /** Has the duties, and `main`. */
  readonly first: Replica;
  /** Has every instance that is made by it. */
  readonly second: Replica;
  readonly call: GatewayCall;
  /** Of the sound that is sent. */
  readonly audio: string;
  send(instance: string, fields: object, idempotencyKey?: string): Promise<Json>;
  keyedSend(instance: string, idempotencyKey: string, request: object): Promise<AnsweredSend>;
  messages(instance: string, jid: string): Promise<Json[]>;
  /** Resolves when the message has come so far. */
  isAt(instance: string, jid: string, id: string, status: string): Promise<void>;
}

export type AnsweredSend = Required<Omit<KeyedSend, 'messageId'>>;

/** @param eventsUrl where nobody answers, so that the statuses of messages are still to be told */
export async function openGateways(edition: FirstEdition, eventsUrl: string): Promise<Gateways> {
  const { outside, environment, home } = edition;
  const xmppServer = await openXmppServer();
  const whatsappLog = join(home, 'whatsapp.log');
  const ports = (await freePorts(2)).map(String);
  const start = async (port = ''): Promise<Replica> => {
    const settings = {
      GATEWAY_EVENTS_URL: eventsUrl,
      GATEWAY_PORT: port,
      OUTBOUND_ALLOW: `${outside.outboundAllow},${xmppServer.outboundAllow}`,
      FAKE_WHATSAPP_LOG: whatsappLog,
      SENDS_PER_MINUTE: '0',
    };
    const process = edition.start('gateway', settings, PRELOAD);
    await process.says(/^Gateway/m);
    return { process, call: gatewayCall(`http://127.0.0.1:${port}`, environment.GATEWAY_API_KEY ?? '') };
  };
  const first = await start(ports[0]);
  const second = await start(ports[1]);
  const { call } = second;
  const audio = outside.videos.url('talk.mp4');
  const send: Gateways['send'] = async (instance, fields, idempotencyKey) => {
    const headers: Record<string, string> =
      idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey };
    const path = `/message/sendMessengerAudio/${instance}`;
    return ok(await call('POST', path, { audio, ...fields }, headers));
  };
  const messages: Gateways['messages'] = async (instance, jid) =>
    ok(await call('GET', `${chatPath(instance, jid)}/messages`));
  return {
    xmppServer,
    whatsappLog,
    first,
    second,
    call,
    audio,
    send,
    keyedSend: async (instance, idempotencyKey, request) => ({
      instance,
      idempotencyKey,
      request,
      answer: await send(instance, request, idempotencyKey),
    }),
    messages,
    async isAt(instance, jid, id, status) {
      await until(`${id} to be at ${status}`, async () =>
        (await messages(instance, jid)).some((message) => message.key.id === id && message.status === status),
      );
    },
  };
}

export const chatPath = (instance: string, jid: string): string =>
  `/inbox/api/instances/${instance}/chats/${jid}`;

/** @throws Error that shows what the gateway answered instead */
export function ok({ status, body }: Pick<GatewayAnswer, 'status' | 'body'>): Json {
  if (status >= 300) throw new Error(`the gateway answered ${status}: ${JSON.stringify(body)}`);
  return body;
}
