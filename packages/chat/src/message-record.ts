/** A message as the gateway keeps it. */

import { MessageContent } from 'soundpost-contract/gateway';
import type { MessageRecordAnswer } from 'soundpost-contract/gateway-operations';
import { MessageKey, MessageStatus } from 'soundpost-contract/job';
import { z } from 'zod';

export const MessageRecord = z.object({
  instanceId: z.string(),
  instanceName: z.string(),
  ownJid: z.string(),
  key: MessageKey,
  /** Who wrote it, where that was somebody else. */
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
  /** Whether its text was changed after it was sent. */
  readonly edited: boolean;
}

/** The context of a message that answers nobody and mentions nobody. */
export const plainContext: MessageRecord['context'] = {
  quoted: undefined,
  mentioned: [],
  mentionsEveryOne: false,
  linkPreview: false,
};

/** The fields of its hash in Redis; `text` and `edited` stand beside the record, so that a change rewrites nothing. */
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

/** The content after a change of its text: a voice message gets it as its caption. */
export function withText(content: MessageContent, text: string): MessageContent {
  return 'audioMessage' in content
    ? { audioMessage: { ...content.audioMessage, caption: text } }
    : { conversation: text };
}

/** A message as callers and receivers of events read it. */
export function messageAnswer(record: MessageRecord, status: MessageStatus): MessageRecordAnswer {
  return {
    key: record.key,
    pushName: record.authorName ?? null,
    message: record.message,
    messageTimestamp: String(record.timestampSeconds),
    status,
  };
}
