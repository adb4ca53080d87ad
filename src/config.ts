/**
 * The environment as one schema (decisions E). Every variable is optional: the defaults make `script/server` work on
 * a bare machine. This is the only file that reads `process.env`; docs/configuration.md is held to it by a test.
 */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

const port = z.coerce.number().int().min(0).max(65_535);
const seconds = z.coerce.number().positive();
const count = z.coerce.number().int().positive();
const bytes = z.coerce.number().int().positive();
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const numbers = list.transform((items) => items.map(Number));
/** `20` for every network, or `whatsapp:20,xmpp:60`; one that is not named keeps its own limit. */
const sendLimits = z
  .string()
  .regex(
    /^(\d+|[a-z]+:\d+(,[a-z]+:\d+)*)$/,
    'must be a number, or networks with one each, such as whatsapp:20,xmpp:60',
  )
  .transform((text) =>
    text.includes(':')
      ? Object.fromEntries(text.split(',').map((part) => part.split(':')))
      : { loopback: text, xmpp: text, whatsapp: text },
  )
  .pipe(
    z
      .strictObject({ loopback: z.coerce.number(), xmpp: z.coerce.number(), whatsapp: z.coerce.number() })
      .partial(),
  );
const httpUrl = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, ''));

export const Environment = z.object({
  HOST: z.string().default('127.0.0.1').describe('Address that the servers listen on'),
  API_PORT: port.default(8080).describe('Port of the API; 0 takes a free one'),
  GATEWAY_PORT: port.default(8081).describe('Port of the messaging gateway; 0 takes a free one'),
  WORKER_PORT: port.default(8082).describe('Port for health of a lone worker; 0 takes a free one'),
  PUBLIC_URL: httpUrl
    .optional()
    .describe(
      'Absolute base of statusUrl, Location and outputFile.url; default `http://127.0.0.1:<API_PORT>`',
    ),
  GATEWAY_PUBLIC_URL: httpUrl
    .optional()
    .describe('Absolute base of media URLs; default `http://127.0.0.1:<GATEWAY_PORT>`'),
  GATEWAY_URL: httpUrl
    .optional()
    .describe('Gateway that voice messages are sent through; default: this project’s own'),
  GATEWAY_KIND: z
    .enum(['soundpost', 'other'])
    .default('soundpost')
    .describe('Whether GATEWAY_URL is this project’s gateway or another server with its interface'),
  GATEWAY_BRAND: z
    .string()
    .regex(/^[A-Za-z]+$/)
    .default('Messenger')
    .describe('Brand segment of the send path that the worker calls'),
  GATEWAY_BRANDS: list
    .default(['Messenger', 'WhatsApp'])
    .describe('Brand segments that the gateway answers to'),
  GATEWAY_EVENTS_URL: httpUrl
    .optional()
    .describe('Where the gateway posts messages.update; default: the API’s `/hooks/gateway`'),
  DATA_DIR: z
    .string()
    .min(1)
    .default('./data')
    .transform((path) => resolve(path))
    .describe('Folder of everything kept on disk'),
  REDIS_URL: z
    .string()
    .regex(/^(redis|rediss|unix):\/\//, 'must begin with redis://, rediss:// or unix://')
    .optional()
    .describe('Redis or Valkey; unset: an embedded Redis under DATA_DIR'),
  SECRET_KEY: z
    .string()
    .min(32, 'must have at least 32 bytes')
    .optional()
    .describe(
      'Root of all derived secrets; unset: made once in `DATA_DIR/secret-key`; must be set with REDIS_URL',
    ),
  BOOTSTRAP_API_KEY: z
    .string()
    .regex(
      /^sp_[a-z0-9]{8}_[A-Za-z0-9]{32,64}$/,
      'must be of the form sp_<8 of a-z 0-9>_<32 to 64 letters and digits>',
    )
    .optional()
    .describe('Key created with every scope when its id does not exist'),
  GATEWAY_API_KEY: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .describe('The gateway’s own key; unset: derived from SECRET_KEY'),
  OUTBOUND_ALLOW: z
    .string()
    .default('')
    .describe('Comma-separated `host-or-CIDR:port` that may be reached although not public'),
  OUTBOUND_PORTS: numbers
    .pipe(z.array(z.int().min(1).max(65_535)))
    .default([80, 443, 8080, 8443])
    .describe('Ports that public source and webhook URLs may name'),
  TRUST_PROXY: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('Number of proxies in front whose forwarded address is believed'),
  CORS_ORIGINS: list
    .default([])
    .describe(
      'Comma-separated origins whose web pages may call the API, such as `https://app.example.com`; `*` for any',
    ),
  WORKER_CONCURRENCY: count
    .default(availableParallelism())
    .describe('Jobs that one worker encodes at a time; default: the cores'),
  DOWNLOADS_AHEAD: z.coerce
    .number()
    .int()
    .min(0)
    .default(4)
    .describe('Jobs that one worker downloads, or keeps downloaded, beside those that it encodes'),
  QUEUE_LIMIT: count.default(10_000).describe('Waiting jobs above which submissions answer QUEUE_FULL'),
  MAX_INPUT_BYTES: bytes.default(5 * GIB).describe('Largest source, bytes'),
  MAX_AUDIO_SECONDS: seconds.default(6 * HOUR).describe('Longest audio, seconds'),
  SOURCE_PATIENCE_SECONDS: seconds
    .default(20)
    .describe(
      'How long a source may send nothing, or less than SOURCE_MIN_BYTES_PER_SECOND, before a try (of three) is given up, seconds',
    ),
  SOURCE_MIN_BYTES_PER_SECOND: count
    .default(8 * 1024)
    .describe('Least average rate of a source, bytes a second'),
  OUTPUT_TTL_SECONDS: seconds.default(DAY).describe('How long a result is kept, seconds'),
  UPLOAD_TTL_SECONDS: seconds.default(DAY).describe('How long an upload is kept, seconds'),
  MEDIA_TTL_SECONDS: seconds
    .default(30 * DAY)
    .describe('How long the gateway keeps the media of a message, seconds'),
  JOB_TTL_SECONDS: seconds.default(7 * DAY).describe('How long the record of a job is kept, seconds'),
  RATE_SUBMIT_PER_MINUTE: count
    .default(60)
    .describe('Submissions a minute and key; a batch counts as its jobs'),
  RATE_READ_PER_MINUTE: count.default(3600).describe('Reads a minute and key'),
  UNFINISHED_PER_KEY: count.default(100).describe('Unfinished jobs a key may have'),
  SENDS_PER_MINUTE: sendLimits
    .default({ whatsapp: 20, xmpp: 60 })
    .describe(
      'Messages that an instance may send in a minute, one number or one by network, 0 for no limit; default: `whatsapp:20,xmpp:60`',
    ),
  WEBHOOK_SCHEDULE_SECONDS: numbers
    .pipe(z.array(z.number().min(0)).min(1))
    .default([0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400])
    .describe('When a webhook is attempted, seconds after the event'),
  VOICE_ON_UNKNOWN: z
    .enum(['keep', 'resend'])
    .default('keep')
    .describe('What becomes of a voice message whose answer was lost, with GATEWAY_KIND=other'),
  DISK_RESERVE_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe(
      'Disk space that stays free, bytes; jobs and uploads wait or are refused before it is touched; 0 for no check at all; default: 1 GiB, or 5 % of a volume under 20 GiB',
    ),
  JOB_LOCK_SECONDS: seconds
    .default(30)
    .describe('How long a worker may be silent before its job is given to another'),
  WATCHDOG_SECONDS: z.coerce
    .number()
    .min(0)
    .default(60)
    .describe(
      'After so long a worker that takes no job although jobs wait and it has room, and a process whose event loop stands still, end themselves to be started again; 0: never',
    ),
  SANDBOX: z
    .enum(['auto', 'required'])
    .default('auto')
    .describe(
      'Whether a process that runs ffmpeg may start where it cannot be confined: `auto` says so in the log, `required` refuses',
    ),
  SHUTDOWN_SECONDS: seconds.default(30).describe('How long running jobs may finish after SIGTERM'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least severe records that are written'),
});

/** Where programs are looked for; not a setting of ours, but this file is the only one that reads the environment. */
export const searchPath = process.env.PATH ?? '';

export type Config = z.infer<typeof Environment>;

export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
}

/**
 * Reads the environment. An empty value counts as unset.
 * Throws a {@link ConfigurationError} that lists every fault at once: variable, rule, and where to look.
 */
export function loadConfig(environment: Readonly<Record<string, string | undefined>> = process.env): Config {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([name, value]) => name in Environment.shape && value !== ''),
  );
  const parsed = Environment.safeParse(given);
  const faults = parsed.success
    ? []
    : parsed.error.issues.map((issue) => `${String(issue.path[0])}: ${issue.message}`);
  if (given.REDIS_URL !== undefined && given.SECRET_KEY === undefined) {
    faults.push('SECRET_KEY: must be set when REDIS_URL is, so that every process derives the same secrets');
  }
  if (!parsed.success || faults.length > 0) {
    throw new ConfigurationError(
      `the environment has ${faults.length} fault(s); docs/configuration.md lists every variable\n  ${faults.join('\n  ')}`,
    );
  }
  return parsed.data;
}
