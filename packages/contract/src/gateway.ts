/**
 * What a client and the messaging gateway send each other (messaging-gateway.md; decisions B and
 * C). Objects are not strict: unknown fields are ignored, because public clients send some.
 */
import { z } from 'zod';
import { MessageKey, MessageStatus } from './job.ts';
import { SpokenLanguage } from './transcripts.ts';

/** A voice message's content; hashes and keys are base64, lengths and times decimal strings. */
export const AudioMessage = z.object({
  url: z.string().meta({
    description: 'Where the encrypted file is; needs no key',
    example: 'http://127.0.0.1:8081/media/5b7a0c3c9f1e4d7a8b2c6d5e4f3a2b1c.enc',
  }),
  mimetype: z.string().meta({ example: 'audio/ogg; codecs=opus' }),
  fileSha256: z.string().meta({
    description: 'SHA-256 of the plain file, base64',
    example: 'n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=',
  }),
  fileLength: z
    .string()
    .meta({ description: 'Bytes of the plain file, as a decimal string', example: '8412' }),
  seconds: z.int().min(1).meta({ description: 'Duration, rounded, at least 1', example: 3 }),
  ptt: z.boolean().meta({ example: true }),
  mediaKey: z.string().meta({
    description: '32 bytes, base64; anyone with this key can open the file',
    example: '<MEDIA_KEY>',
  }),
  fileEncSha256: z.string().meta({
    description: 'SHA-256 of the encrypted file, base64',
    example: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
  }),
  directPath: z
    .string()
    .meta({ description: 'Path of url', example: '/media/5b7a0c3c9f1e4d7a8b2c6d5e4f3a2b1c.enc' }),
  mediaKeyTimestamp: z
    .string()
    .meta({ description: 'Epoch seconds, as a decimal string', example: '1795000000' }),
  waveform: z.string().meta({
    description: '64 bytes of 0 to 100, base64',
    example: 'AAUKDxQZHiMoLTI3PEFGS1BVWl9kX1pVUEtGQTw3Mi0oIx4ZFA8KBQAFCg8UGR4jKC0yNzxBRktQVVpfZA==',
  }),
  caption: z.string().optional().meta({ description: 'Text under the player, set by updateMessage' }),
});
export type AudioMessage = z.infer<typeof AudioMessage>;

/** A video that came in, as it was sent. */
export const VideoMessage = AudioMessage.omit({ seconds: true, ptt: true, waveform: true }).extend({
  mimetype: z.string().meta({ description: 'As its sender said', example: 'video/mp4' }),
  caption: z.string().optional().meta({ description: 'Text under the video' }),
});
export type VideoMessage = z.infer<typeof VideoMessage>;

/** What a message says: a voice message, a video that came in, or a text. */
export const MessageContent = z.union([
  z.object({ audioMessage: AudioMessage }),
  z.object({ videoMessage: VideoMessage }),
  z.object({ conversation: z.string() }),
]);
export type MessageContent = z.infer<typeof MessageContent>;

export const SentMessage = z.object({
  key: MessageKey,
  message: z.object({ audioMessage: AudioMessage }),
  messageTimestamp: z
    .string()
    .meta({ description: 'Epoch seconds, as a decimal string', example: '1795000000' }),
  status: MessageStatus,
});
export type SentMessage = z.infer<typeof SentMessage>;

export const SentText = SentMessage.extend({ message: z.object({ conversation: z.string() }) });
export type SentText = z.infer<typeof SentText>;

/** Longest presence before a message (decisions B). */
const MAX_DELAY_MS = 60_000;

/**
 * The documented type of a field that takes several: callers that follow the document send this
 * one. The document's generator reads it from the schema's metadata.
 */
export const DOCUMENTED_TYPE = 'x-documented-type';

/** Digits of a phone number, with or without `+ ( ) - space`, or a JID; integers too. */
export const Recipient = z
  .union([z.string(), z.int()], 'must be a phone number or a JID')
  .transform(String)
  .pipe(z.string().trim().min(1, 'must not be empty').max(128))
  .meta({
    [DOCUMENTED_TYPE]: 'string',
    description:
      'Number with country code, or JID. Spaces, `+ ( ) - .` and direction marks are ignored. Also accepts an integer.',
    example: '12025550101',
  });

// A multipart field is always text, and public clients also send text in JSON.
export const Flag = z
  .union(
    [z.boolean(), z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0', ''] })],
    'must be true or false',
  )
  .meta({ [DOCUMENTED_TYPE]: 'boolean' });
/** How long a presence is shown: longer times count as the limit (decisions B). */
export const Delay = z
  .union(
    [
      z.int().min(0),
      z
        .string()
        .regex(/^\d{1,9}$/)
        .transform(Number),
    ],
    'must be milliseconds, as an integer from 0',
  )
  .transform((milliseconds) => Math.min(milliseconds, MAX_DELAY_MS))
  .meta({ [DOCUMENTED_TYPE]: 'integer' });

/** Public clients write `{}` where nothing is quoted. */
const Quoted = z.object({
  key: z
    .object({
      id: z
        .string()
        .max(128)
        .nullish()
        .meta({ description: 'Id of the message to reply to; an unknown id is ignored' }),
    })
    .nullish(),
  message: z
    .object({ conversation: z.string().max(4096).nullish().meta({ description: 'Its content' }) })
    .nullish(),
});

const MOST_MENTIONED = 1024;

/** Public clients write one number, or several with commas, where a list belongs. */
const Mentioned = z
  .union(
    [
      z.array(Recipient).max(MOST_MENTIONED),
      z.string().transform((text) =>
        text
          .split(',')
          .filter((one) => one.trim() !== '')
          .slice(0, MOST_MENTIONED),
      ),
    ],
    `must be at most ${MOST_MENTIONED} numbers or JIDs: a list, or text with commas`,
  )
  .meta({
    [DOCUMENTED_TYPE]: 'array',
    description: 'Numbers or JIDs to mention: a list, or text with commas',
  });

/** What a voice message and a text have in common. */
export const SendFields = z.object({
  number: Recipient,
  delay: Delay.nullish().meta({
    description: `How long the chat shows a presence before the message is sent, ms; at most ${MAX_DELAY_MS}`,
  }),
  quoted: Quoted.nullish(),
  mentioned: Mentioned.nullish(),
  mentionsEveryOne: Flag.nullish().meta({ description: 'Mentions everybody in the group' }),
  linkPreview: Flag.nullish().meta({ description: 'On whatsapp-cloud, previews a text’s first link' }),
});
export type SendFields = z.infer<typeof SendFields>;

/** The longest text of WhatsApp. */
export const MAX_TEXT_LENGTH = 65_536;

/** `POST /message/sendText/{instance}` (decisions B). */
export const SendTextRequest = SendFields.extend({
  text: z.string().min(1, 'must not be empty').max(MAX_TEXT_LENGTH).meta({ example: 'On my way.' }),
});

/** The body of the audio send operation without the audio, which may also come as a file. */
export const SendAudioFields = SendFields.extend({
  encoding: Flag.nullish().meta({
    description:
      '`false` sends any Ogg Opus file with one channel unchanged, even if phones cannot play it. Default true.',
  }),
});
export type SendAudioFields = z.infer<typeof SendAudioFields>;

/** The body of the audio send operation as JSON. */
export const SendAudioRequest = SendAudioFields.extend({
  audio: z.string('must be an http(s) URL, base64 or a data URI').min(1, 'must not be empty').meta({
    description: 'http(s) URL of a public address, base64, or a base64 data URI; at most 24 MiB',
    example: 'https://example.com/greeting.mp3',
  }),
});
export type SendAudioRequest = z.infer<typeof SendAudioRequest>;

/** Formats of `POST /process-audio` (decisions F2). */
const ConvertedFormat = z.enum(['ogg', 'mp3', 'mp4'], 'must be ogg, mp3 or mp4');

/** The fields of `POST /process-audio`, a form; the sound may also come as the part `file`. */
export const ConvertFields = z.object({
  url: z.string().optional().meta({
    description: 'http(s) URL of a public address',
    example: 'https://example.com/greeting.mp3',
  }),
  base64: z
    .string()
    .optional()
    .meta({ description: 'The audio in base64, or as a data URI: at most 24 MiB of text' }),
  format: ConvertedFormat.default('ogg').meta({
    description: '`ogg` is a voice note as phones record it, `mp4` is AAC in ADTS',
  }),
  transcribe: Flag.optional().meta({
    description:
      '`true` also transcribes the audio, which needs TRANSCRIBER_URL. TRANSCRIPT_MINUTES_PER_DAY does not count it.',
  }),
  language: SpokenLanguage.optional().meta({
    description: 'Language of the speech. By default, the transcriber detects it.',
  }),
});
export type ConvertFields = z.infer<typeof ConvertFields>;

export const ConvertAnswer = z.object({
  duration: z.int().min(1).meta({ description: 'Seconds, rounded, at least 1', example: 3 }),
  format: ConvertedFormat,
  audio: z.string().meta({ description: 'The converted file, base64', example: 'T2dnUwACAAAAAAAAAAA=' }),
  transcription: z
    .string()
    .optional()
    .meta({ description: 'The transcript, if `transcribe` is true', example: 'On my way.' }),
});
