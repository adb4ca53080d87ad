/**
 * wuzapi (github.com/asternic/wuzapi): `POST /chat/send/audio` (handlers.go, SendAudio) and the
 * event `ReadReceipt` (wmiau.go). An account is a token, so the instance's name is not sent.
 */
import { parseJson } from 'soundpost-base/json';
import type { MessageStatus } from 'soundpost-contract/job';
import { z } from 'zod';
import { failureOf, type GatewayAdapter, REFUSED_BY_WHATSAPP, whatsAppAddress } from './adapter.ts';
import { wordsOf } from './words.ts';

const DOMAIN = 's.whatsapp.net';

const Sent = z.object({ data: z.object({ Id: z.string().min(1).max(128) }) });

const states: Readonly<Record<string, MessageStatus>> = { Delivered: 'DELIVERY_ACK', Read: 'READ' };
const ReceiptEvent = z.object({
  type: z.literal('ReadReceipt'),
  state: z.string(),
  event: z.object({
    MessageIDs: z.array(z.string().min(1).max(128)).max(1000),
    /** From another device of the account itself. */
    IsFromMe: z.boolean().optional(),
  }),
});

/** It answers these with 500 before anything is sent. */
const NOTHING_SENT = /^no session$|^failed to upload file/i;

export const wuzapi: GatewayAdapter = {
  call({ request: { number, quoted, mentioned = [] }, audio, apiKey }) {
    const Phone = whatsAppAddress(number, DOMAIN);
    const context = {
      // In a private chat what is quoted was said by the other side.
      ...(quoted && { StanzaId: quoted.key.id, Participant: Phone }),
      ...(mentioned.length > 0 && {
        MentionedJID: mentioned.map((person) => whatsAppAddress(person, DOMAIN)),
      }),
    };
    // Without parameters: versions before 2026 compare the beginning with `data:audio/ogg`.
    const type = audio.mediaType.split(';')[0];
    return {
      path: '/chat/send/audio',
      headers: { token: apiKey },
      body: {
        Phone,
        Audio: audio.base64 === undefined ? audio.url : `data:${type};base64,${audio.base64}`,
        ptt: audio.isNote,
        mimetype: audio.mediaType,
        ...(audio.seconds && { Seconds: Math.max(1, Math.round(audio.seconds)) }),
        ...(Object.keys(context).length > 0 && { ContextInfo: context }),
        ...(quoted?.message && { QuotedMessage: quoted.message }),
      },
    };
  },
  sent(json, { number }) {
    const { data } = Sent.safeParse(json);
    if (data === undefined) return undefined;
    const key = { remoteJid: whatsAppAddress(number, DOMAIN), fromMe: true, id: data.data.Id };
    // It answers once WhatsApp's server has the message.
    return { key, messageStatus: 'SERVER_ACK' };
  },
  failure(answered) {
    const failure = failureOf(answered, wordsOf(answered.json));
    if (REFUSED_BY_WHATSAPP.test(failure.message)) {
      return { ...failure, kind: 'refused', code: 'network_refused' };
    }
    return NOTHING_SENT.test(failure.message)
      ? { ...failure, kind: 'not-now', code: 'not_connected' }
      : failure;
  },
  updates(body) {
    // A form, unless WEBHOOK_FORMAT=json is set there.
    const json = body.trimStart().startsWith('{') ? body : (new URLSearchParams(body).get('jsonData') ?? '');
    const { data } = ReceiptEvent.safeParse(parseJson(json));
    const status = states[data?.state ?? ''];
    if (data === undefined || status === undefined || data.event.IsFromMe) return [];
    return data.event.MessageIDs.map((id) => ({ id, status }));
  },
  cannot: [
    {
      field: 'quoted',
      why: 'wuzapi needs the author of the quoted message, which is unknown in a group',
      isAsked: ({ quoted, number }) =>
        quoted !== undefined && whatsAppAddress(number, DOMAIN).endsWith('@g.us'),
    },
    {
      field: 'mentionsEveryOne',
      why: 'wuzapi mentions people one by one: name them in mentioned',
      isAsked: ({ mentionsEveryOne = false }) => mentionsEveryOne,
    },
    {
      field: 'delay',
      why: 'wuzapi shows no presence before a voice message',
      isAsked: ({ delay = 0 }) => delay > 0,
    },
  ],
};
