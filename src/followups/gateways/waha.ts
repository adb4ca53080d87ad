/**
 * WAHA (github.com/devlikeapro/waha): `POST /api/sendVoice` (src/structures/chatting.dto.ts) and
 * the event `message.ack` (webhooks.dto.ts). Its engines answer in different forms.
 */
import { jsonOf, parseJson } from 'soundpost-base/json';
import type { MessageStatus } from 'soundpost-contract/job';
import { z } from 'zod';
import { failureOf, type GatewayAdapter, REFUSED_BY_WHATSAPP, whatsAppAddress } from './adapter.ts';
import { wordsOf } from './words.ts';

/** WAMessageAck (enums.dto.ts), from -1 on. */
const acks: readonly MessageStatus[] = ['ERROR', 'PENDING', 'SERVER_ACK', 'DELIVERY_ACK', 'READ', 'PLAYED'];
const Ack = z.int().transform((ack) => acks[ack + 1]);

/**
 * `true_12025550101@c.us_3EB0…`, in groups with a fourth part; WEBJS also sends it as an object.
 * Only the third part is the same in answer and event: a chat has a number and a LID.
 */
const MessageId = z
  .union([
    z.string(),
    z.object({ _serialized: z.string() }).transform((id) => id._serialized),
    z.object({ id: z.string() }).transform(({ id }) => id),
  ])
  .transform((id) => id.split('_')[2] ?? id)
  .pipe(z.string().min(1).max(128));

/** NOWEB's own form has a key in place of the id. */
const Sent = z
  .union([
    z.object({ id: MessageId, ack: Ack.optional().catch(undefined) }),
    z.object({ key: z.object({ id: MessageId }) }).transform(({ key: { id } }) => ({ id, ack: undefined })),
  ])
  .transform(({ id, ack }) => ({ id, messageStatus: ack ?? ('PENDING' as const) }));

const AckEvent = z.object({
  event: z.enum(['message.ack', 'message.ack.group']),
  payload: z.object({ id: MessageId, ack: Ack, fromMe: z.boolean().optional() }),
});

/** The session is not connected: nothing was sent (manager.abc.ts, waitUntilStatus). */
const NotWorking = z.object({ expected: z.array(z.string()), status: z.string(), error: z.string() });

/** A 500 repeats the whole request after the error, so only its beginning is read. */
const FIRST_MESSAGE = /"message":("(?:[^"\\]|\\.){0,500}")/;

export const waha: GatewayAdapter = {
  call({ request: { instance, number, quoted }, audio, apiKey }) {
    const chatId = whatsAppAddress(number, 'c.us');
    const id = quoted?.key.id;
    const file = {
      mimetype: audio.mediaType,
      ...(audio.isNote ? { filename: 'voice.ogg' } : {}),
      ...(audio.base64 === undefined ? { url: audio.url } : { data: audio.base64 }),
    };
    // WEBJS takes whole ids only: a bare one is taken for a message of the other side.
    const quote = id === undefined ? {} : { reply_to: isWhole(id) ? id : `false_${chatId}_${id}` };
    return {
      path: '/api/sendVoice',
      headers: { 'x-api-key': apiKey },
      body: { session: instance, chatId, file, ...quote, convert: !audio.isNote },
    };
  },
  sent(json, { number }) {
    const { data } = Sent.safeParse(json);
    if (data === undefined) return undefined;
    const key = { remoteJid: whatsAppAddress(number, 'c.us'), fromMe: true, id: data.id };
    return { key, messageStatus: data.messageStatus };
  },
  failure(answered) {
    const { json, text } = answered;
    const stopped = NotWorking.safeParse(json).data;
    if (stopped !== undefined) {
      const message = `${stopped.error} (${stopped.status})`;
      return { kind: 'not-now', code: 'not_connected', message };
    }
    const [, first = '""'] = json === undefined ? (FIRST_MESSAGE.exec(text) ?? []) : [];
    const failure = failureOf(answered, wordsOf(json === undefined ? { message: jsonOf(first) } : json));
    return REFUSED_BY_WHATSAPP.test(failure.message)
      ? { ...failure, kind: 'refused', code: 'network_refused' }
      : failure;
  },
  updates(body) {
    const { payload } = AckEvent.safeParse(parseJson(body)).data ?? {};
    const isOurs = payload !== undefined && payload.fromMe !== false;
    return isOurs && payload.ack !== undefined ? [{ id: payload.id, status: payload.ack }] : [];
  },
  cannot: [
    {
      field: 'quoted',
      why: 'in a group WAHA needs the whole id of the quoted message, with its author, as false_…@g.us_…_…@c.us',
      isAsked: ({ quoted, number }) =>
        quoted !== undefined && !isWhole(quoted.key.id) && whatsAppAddress(number, 'c.us').endsWith('@g.us'),
    },
    {
      field: 'mentioned',
      why: 'WAHA mentions nobody in a voice message',
      isAsked: ({ mentioned = [] }) => mentioned.length > 0,
    },
    {
      field: 'mentionsEveryOne',
      why: 'WAHA mentions nobody in a voice message',
      isAsked: ({ mentionsEveryOne = false }) => mentionsEveryOne,
    },
    {
      field: 'delay',
      why: 'WAHA shows no presence before a voice message',
      isAsked: ({ delay = 0 }) => delay > 0,
    },
  ],
};

/** As WAHA gives it; WhatsApp's own ids have no underscore. */
function isWhole(messageId: string): boolean {
  return messageId.includes('_');
}
