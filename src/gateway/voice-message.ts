/** Converts a message between request, record and answer. */

import { parseAddress } from 'soundpost-chat/address';
import type { MessageRecord } from 'soundpost-chat/message-log';
import type { MessageContext } from 'soundpost-chat/transport';
import type { AudioMessage, SendFields, SentMessage, SentText } from 'soundpost-contract/gateway';

/** Throws bad_request, naming every invalid mention. */
export function messageContext(fields: SendFields): MessageContext {
  const { quoted } = fields;
  const quotedId = quoted?.key?.id;
  return {
    quoted: quotedId ? { id: quotedId, text: quoted.message?.conversation ?? undefined } : undefined,
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

export function sentVoice(record: MessageRecord): SentMessage {
  return { ...sent(record), message: { audioMessage: audioOf(record) } };
}

export function sentText(record: MessageRecord): SentText {
  if (!('conversation' in record.message)) {
    throw new Error('a voice message was recorded under the id of a text');
  }
  return { ...sent(record), message: record.message };
}

function sent(record: MessageRecord): Omit<SentMessage, 'message'> {
  return {
    key: record.key,
    messageTimestamp: String(record.timestampSeconds),
    status: 'PENDING',
  };
}
