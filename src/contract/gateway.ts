/**
 * What crosses the wire between a client and the messaging gateway (messaging-gateway.md; decisions B and C).
 * Objects are not strict: fields that the gateway does not know are ignored, because public clients send some.
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
  waveform: z.string().meta({ description: '64 bytes of 0 to 100, base64' }),
  caption: z.string().optional().meta({ description: 'Text under the player, set by updateMessage' }),
});
export type AudioMessage = z.infer<typeof AudioMessage>;

/** What a message says: a voice message or a text. */
export const MessageContent = z.union([
  z.object({ audioMessage: AudioMessage }),
  z.object({ conversation: z.string() }),
]);
export type MessageContent = z.infer<typeof MessageContent>;

export const SentMessage = z.object({
  key: MessageKey,
  message: z.object({ audioMessage: AudioMessage }),
  messageTimestamp: z.string(),
  status: MessageStatus,
});
export type SentMessage = z.infer<typeof SentMessage>;

/** Longest presence before a message (decisions B). */
export const MAX_DELAY_MS = 60_000;

/** A phone number as digits, with or without `+ ( ) - space`, or a JID; an integer is taken as its digits. */
export const Recipient = z
  .union([z.string(), z.int().nonnegative()], 'must be a phone number or a JID')
  .transform(String)
  .pipe(z.string().trim().min(1, 'must not be empty').max(128));

// A multipart field is always text, and public clients also send text in JSON.
export const Flag = z.union([
  z.boolean(),
  z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0', ''] }),
]);
export const Milliseconds = z.union([
  z.int(),
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be an integer')
    .transform(Number),
]);

const Quoted = z.object({
  key: z.object({ id: z.string().min(1).max(128) }),
  message: z.object({ conversation: z.string().max(4096).optional() }).nullish(),
});

/** The body of the audio send operation but for the audio itself, which may also come as a file. */
export const SendAudioFields = z.object({
  number: Recipient,
  delay: Milliseconds.pipe(z.int().min(0).max(MAX_DELAY_MS)).nullish(),
  quoted: Quoted.nullish(),
  mentioned: z.array(Recipient).max(1024).nullish(),
  mentionsEveryOne: Flag.nullish(),
  linkPreview: Flag.nullish(),
});
export type SendAudioFields = z.infer<typeof SendAudioFields>;

/** The body of the audio send operation as JSON. */
export const SendAudioRequest = SendAudioFields.extend({
  audio: z.string('must be an http(s) URL, base64 or a data URI').min(1, 'must not be empty'),
});
export type SendAudioRequest = z.infer<typeof SendAudioRequest>;
