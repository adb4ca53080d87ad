/**
 * What crosses the wire between a client and the messaging gateway (messaging-gateway.md; decisions B and C).
 */
import { z } from 'zod';
import { MessageKey, MessageStatus } from './job.ts';

/** The content of a voice message; hashes and keys are base64, lengths and times decimal strings. */
export const AudioMessage = z.object({
  url: z.string(),
  mimetype: z.string(),
  fileSha256: z.string(),
  fileLength: z.string(),
  seconds: z.int().min(1),
  ptt: z.boolean(),
  mediaKey: z.string(),
  fileEncSha256: z.string(),
  directPath: z.string(),
  mediaKeyTimestamp: z.string(),
  waveform: z.string(),
});
export type AudioMessage = z.infer<typeof AudioMessage>;

export const SentMessage = z.object({
  key: MessageKey,
  message: z.object({ audioMessage: AudioMessage }),
  messageTimestamp: z.string(),
  status: MessageStatus,
});
export type SentMessage = z.infer<typeof SentMessage>;
