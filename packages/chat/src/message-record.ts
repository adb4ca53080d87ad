/** A message as stored by the gateway. */

import { MessageContent } from 'soundpost-contract/gateway';
import type { MessageRecordAnswer } from 'soundpost-contract/gateway-operations';
import { MessageKey, MessageStatus } from 'soundpost-contract/job';
import { z } from 'zod';

export const MessageRecord = z.object({
  instanceId: z.string(),
  instanceName: z.string(),
  ownJid: z.string(),
  key: MessageKey,
  /** The author, unless it is the instance. */
  authorJid: z.string().optional(),
  authorName: z.string().optional(),
  timestampSeconds: z.int(),
  message: MessageContent,
  context: z.object({
    quoted: z
      .object({ id: z.string(), text: z.string().optional() })
      .optional()
      .transform((quoted) => quoted && { id: quoted.id, text: quoted.text }),
    mentioned: z.array(z.string()).readonly(),
    mentionsEveryOne: z.boolean(),
    linkPreview: z.boolean(),
  }),
});
export type MessageRecord = z.infer<typeof MessageRecord>;

export interface LoggedMessage extends MessageRecord {
  readonly status: MessageStatus;
  /** False while the record is only an intent. */
  readonly settled: boolean;
  /** Whether its text was changed after sending. */
  readonly edited: boolean;
}

/** The context of a message without reply or mentions. */
export const plainContext: MessageRecord['context'] = {
  quoted: undefined,
  mentioned: [],
  mentionsEveryOne: false,
  linkPreview: false,
};

/** Fields of its Redis hash; `text` is separate, so that an edit does not rewrite the record. */
export const MESSAGE_FIELDS = ['record', 'status', 'settled', 'text'] as const;

export function parseLogged([record, status, settled, text]: (string | null)[]): LoggedMessage | undefined {
  if (typeof record !== 'string') {
    return undefined;
  }
  const parsed = MessageRecord.parse(JSON.parse(record));
  return {
    ...parsed,
    message: typeof text === 'string' ? withText(parsed.message, text) : parsed.message,
    status: MessageStatus.parse(status),
    settled: settled === '1',
    edited: typeof text === 'string',
  };
}

/** The content with a new text; for a voice message, the caption. */
export function withText(content: MessageContent, text: string): MessageContent {
  return 'audioMessage' in content
    ? { audioMessage: { ...content.audioMessage, caption: text } }
    : { conversation: text };
}

/** A message as sent to callers and event receivers. */
export function messageAnswer(record: MessageRecord, status: MessageStatus): MessageRecordAnswer {
  return {
    key: record.key,
    pushName: record.authorName ?? null,
    message: record.message,
    messageTimestamp: String(record.timestampSeconds),
    status,
  };
}
