/** A voice message between its request, its record and its answer. */
import type { AudioMessage, SendAudioFields, SentMessage } from '../contract/gateway.ts';
import { parseAddress } from './address.ts';
import type { MessageRecord } from './message-record.ts';
import type { MessageContext } from './transport.ts';

/** Throws bad_request naming every mention that is no address. */
export function messageContext(fields: SendAudioFields): MessageContext {
  const { quoted } = fields;
  return {
    quoted: quoted ? { id: quoted.key.id, text: quoted.message?.conversation } : undefined,
    mentioned: (fields.mentioned ?? []).map((text, index) => parseAddress(text, `mentioned[${index}]`).text),
    mentionsEveryOne: fields.mentionsEveryOne ?? false,
    linkPreview: fields.linkPreview ?? false,
  };
}

export function audioOf({ message }: MessageRecord): AudioMessage {
  if (!('audioMessage' in message)) {
    throw new Error('a text was recorded under the id of a voice message');
  }
  return message.audioMessage;
}

export function sentMessage(record: MessageRecord): SentMessage {
  return {
    key: record.key,
    message: { audioMessage: audioOf(record) },
    messageTimestamp: String(record.timestampSeconds),
    status: 'PENDING',
  };
}
