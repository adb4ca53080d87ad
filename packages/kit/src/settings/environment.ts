/**
 * All environment variables, with form, default and meaning (decisions E). All are optional: the
 * defaults let `script/server` work on a bare machine. docs/reference/configuration.md is
 * made from this.
 */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import {
  bucketUrl,
  bytes,
  count,
  httpUrl,
  list,
  numbers,
  port,
  seconds,
  sendLimits,
  traceHeaders,
  urlWithoutPassword,
} from './values.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

export const Environment = z.object({
  HOST: z.string().default('127.0.0.1').describe('Address that the servers listen on'),
  API_PORT: port.default(8080).describe('Port of the API; 0 picks a free port'),
  GATEWAY_PORT: port.default(8081).describe('Port of the messaging gateway; 0 picks a free port'),
  WORKER_PORT: port
    .default(8082)
    .describe('Port for health and metrics of a worker that runs alone; 0 picks a free port'),
  PUBLIC_URL: httpUrl
    .optional()
    .describe('Base URL of statusUrl, Location and outputFile.url; default `http://127.0.0.1:<API_PORT>`'),
  GATEWAY_PUBLIC_URL: httpUrl
    .optional()
    .describe(
      'Base URL of media, at which the console in a browser reaches the gateway; default `http://127.0.0.1:<GATEWAY_PORT>`',
    ),
  GATEWAY_URL: urlWithoutPassword
    .optional()
    .describe('Gateway that sends voice messages; default: Soundpost’s own'),
  GATEWAY_KIND: z
    .enum(['soundpost', 'other', 'waha', 'wuzapi'])
    .default('soundpost')
    .describe(
      'Type of GATEWAY_URL: Soundpost’s gateway, another server with the same interface, WAHA, or wuzapi',
    ),
  GATEWAY_BRAND: z
    .string()
    .regex(/^[A-Za-z]+$/)
    .default('Messenger')
    .describe('Brand in the path that the worker calls to send'),
  GATEWAY_BRANDS: list
    .default(['Messenger', 'WhatsApp'])
    .describe('Brands in the paths that the gateway accepts'),
  WHATSAPP_VERSION: z
    .string()
    .regex(/^\d{1,4}\.\d{1,5}\.\d{1,12}$/, 'must be three numbers such as 2.3000.1035194821')
    .transform((text): [number, number, number] => {
      const [major = 0, minor = 0, revision = 0] = text.split('.').map(Number);
      return [major, minor, revision];
    })
    .optional()
    .describe(
      'Web client version to report to WhatsApp; unset: the package’s, or, after a 405, the current one of web.whatsapp.com',
    ),
  GATEWAY_ANSWERS: z
    .enum(['contract', 'public'])
    .default('contract')
    .describe(
      'Format of the gateway’s answers and events: `contract` as documented, `public` as the public server’s clients expect',
    ),
  GATEWAY_EVENTS_URL: httpUrl
    .optional()
    .describe('Where the gateway posts messages.update events; default: the API’s `/hooks/gateway`'),
  GATEWAY_EVENTS_TOKEN: z
    .string()
    .regex(/^[\w.~-]{16,}$/, 'must be 16 or more letters, digits or - . _ ~')
    .optional()
    .describe(
      'Token with which another server posts events to the API’s `/hooks/gateway`, as `?token=…` or `Authorization: Bearer …`; unset: only signed events are accepted',
    ),
  GRAPH_URL: urlWithoutPassword
    .default('https://graph.facebook.com/v23.0')
    .describe(
      'Base URL of the Graph API, with its version, for whatsapp-cloud instances; a private address needs OUTBOUND_ALLOW',
    ),
  TELEGRAM_URL: urlWithoutPassword
    .default('https://api.telegram.org')
    .describe(
      'Base URL of the Bot API for telegram instances, such as a local Bot API server; a private address needs OUTBOUND_ALLOW',
    ),
  TRANSCRIBER_URL: urlWithoutPassword
    .optional()
    .describe(
      'Base URL, with `/v1`, of a server with OpenAI’s `POST /v1/audio/transcriptions`, such as `http://127.0.0.1:8000/v1` (see [transcripts](../how-to/transcripts.md)); unset: no transcripts',
    ),
  TRANSCRIBER_API_KEY: z
    .string()
    .min(1)
    .optional()
    .describe('Key for TRANSCRIBER_URL, sent as `Authorization: Bearer`; unset: no key'),
  TRANSCRIBER_MODEL: z
    .string()
    .min(1)
    .default('whisper-1')
    .describe('Model to request from the transcriber; it must support `verbose_json`'),
  TRANSCRIBER_TIMEOUT_SECONDS: seconds
    .default(1800)
    .describe('Timeout of the transcriber for a part of at most 13 minutes of audio and 25 MB, seconds'),
  TRANSCRIBER_PARTS: count
    .default(2)
    .describe('Parts sent to the transcriber at the same time, by all workers together'),
  DATA_DIR: z
    .string()
    .min(1)
    .default('./data')
    .transform((path) => resolve(path))
    .describe('Folder for all data on disk'),
  REDIS_URL: z
    .string()
    .regex(
      /^(rediss?(\+(sentinel|cluster))?|unix):\/\//,
      'must begin with redis://, redis+sentinel://, redis+cluster:// (rediss… for TLS) or unix://',
    )
    .optional()
    .describe(
      'Redis or Valkey (see [operations](../operations/redis.md)); unset: an embedded Redis under DATA_DIR',
    ),
  REDIS_CA_FILE: z
    .string()
    .optional()
    .describe('PEM file of the certificate authorities to trust for rediss://; default: Node’s'),
  REDIS_CERT_FILE: z
    .string()
    .optional()
    .describe('PEM file of the client certificate for rediss://; needs REDIS_KEY_FILE'),
  REDIS_KEY_FILE: z.string().optional().describe('PEM file of the private key for REDIS_CERT_FILE'),
  REDIS_DEADLINE_SECONDS: seconds
    .default(0.9)
    .describe(
      'Timeout of all Redis commands of a request, seconds; after it the answer is 503. A submission that Redis does not accept in time is never started',
    ),
  REDIS_WAIT_REPLICAS: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe(
      'Redis replicas that must have a submission before the answer is 202; with fewer after half a second, it is 503',
    ),
  STORAGE_URL: bucketUrl
    .optional()
    .describe('Bucket for uploads, results and media, `s3://bucket/prefix`; unset: files under DATA_DIR'),
  S3_ENDPOINT: httpUrl
    .optional()
    .describe('Base URL of an S3-compatible server; unset: Amazon’s in S3_REGION'),
  S3_PUBLIC_ENDPOINT: httpUrl
    .optional()
    .describe(
      'Base URL at which callers reach the bucket; downloads are then redirected to it; unset: downloads go through the API',
    ),
  S3_REGION: z.string().min(1).default('us-east-1').describe('Region of the bucket'),
  S3_ACCESS_KEY_ID: z
    .string()
    .optional()
    .describe('Access key of the bucket; unset: what the AWS SDK finds, such as the machine’s role'),
  S3_SECRET_ACCESS_KEY: z.string().optional().describe('Secret for S3_ACCESS_KEY_ID'),
  STORAGE_DEADLINE_SECONDS: seconds
    .default(10)
    .describe(
      'Timeout of the storage, seconds; after it, requests that need the storage get 503, and at once while the storage is known to be down',
    ),
  SECRET_KEY: z
    .string()
    .min(32, 'must have at least 32 bytes')
    .optional()
    .describe(
      'Secret from which all others are derived; with REDIS_URL, set this or SECRET_KEY_FILE; unset: generated once in `DATA_DIR/secret-key`',
    ),
  SECRET_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File with the SECRET_KEY, on a disk that all processes share; used if SECRET_KEY is unset; generated at the first start, except with STORAGE_URL; unset: none',
    ),
  ADOPT: z
    .enum(['0', '1'])
    .default('0')
    .describe(
      '1 accepts, for one start, a Redis and results that do not belong together (`--adopt`); see [disasters](../how-to/disasters.md)',
    ),
  BOOTSTRAP_API_KEY: z
    .string()
    .regex(
      /^sp_[a-z0-9]{8}_[A-Za-z0-9]{32,64}$/,
      'must be of the form sp_<8 of a-z 0-9>_<32 to 64 letters and digits>',
    )
    .optional()
    .describe('API key to create with every scope if its id does not exist'),
  GATEWAY_API_KEY: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .describe('The gateway’s own API key; unset: derived from SECRET_KEY'),
  ADMIN_KEY: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .describe('Password of the queue board at the API’s `/admin/queues`; unset: no board'),
  CONSOLE: z
    .enum(['on', 'off'])
    .default('on')
    .describe('Whether the API serves the console at `/`; using it needs an API key'),
  METRICS_TOKEN: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .describe('Bearer token for `GET /metrics`; unset: only requests from this machine are allowed'),
  OUTBOUND_ALLOW: z
    .string()
    .default('')
    .describe(
      'Comma-separated `host-or-CIDR:port` to allow although they are not public ([details](#details))',
    ),
  OUTBOUND_PORTS: numbers
    .pipe(z.array(z.int().min(1).max(65_535)))
    .default([80, 443, 8080, 8443])
    .describe('Ports allowed in public source and webhook URLs'),
  OUTBOUND_PROXY: z
    .url({ protocol: /^http$/ })
    .transform((url) => new URL(url))
    .optional()
    .describe(
      'Forward proxy, `http://[user:password@]host:port`, used with CONNECT to the checked address; not for addresses in `OUTBOUND_ALLOW`, and not for XMPP; unset: none',
    ),
  TRUST_PROXY: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('Number of trusted reverse proxies, whose forwarded client address is used'),
  CORS_ORIGINS: list
    .default([])
    .describe(
      'Comma-separated origins whose pages may call the API and the gateway, such as `https://app.example.com`; `*` allows any; the console is always allowed',
    ),
  WORKER_CONCURRENCY: count
    .default(availableParallelism())
    .describe('Jobs that a worker encodes at the same time; default: number of cores'),
  DOWNLOADS_AHEAD: z.coerce
    .number()
    .int()
    .min(0)
    .default(4)
    .describe('Jobs that a worker downloads ahead, besides those that it encodes'),
  QUEUE_LIMIT: count
    .default(10_000)
    .describe('Queued jobs above which submissions are rejected with QUEUE_FULL'),
  MAX_INPUT_BYTES: bytes.default(5 * GIB).describe('Largest source, bytes'),
  MAX_AUDIO_SECONDS: seconds.default(6 * HOUR).describe('Longest audio, seconds'),
  SOURCE_PATIENCE_SECONDS: seconds
    .default(20)
    .describe(
      'How long a source may send less than SOURCE_MIN_BYTES_PER_SECOND before an attempt (of three) fails, seconds',
    ),
  SOURCE_MIN_BYTES_PER_SECOND: count
    .default(8 * 1024)
    .describe('Lowest average rate of a source, bytes per second'),
  OUTPUT_TTL_SECONDS: seconds.default(DAY).describe('How long results are kept, seconds'),
  UPLOAD_TTL_SECONDS: seconds.default(DAY).describe('How long uploads are kept, seconds'),
  MEDIA_TTL_SECONDS: seconds
    .default(30 * DAY)
    .describe('How long the gateway keeps media of messages, seconds'),
  JOB_TTL_SECONDS: seconds.default(7 * DAY).describe('How long records of jobs are kept, seconds'),
  RATE_SUBMIT_PER_MINUTE: count
    .default(60)
    .describe('Submissions per minute for each key; a batch counts once per job'),
  RATE_READ_PER_MINUTE: count.default(3600).describe('Reads per minute for each key'),
  UNFINISHED_PER_KEY: count.default(100).describe('Unfinished jobs for each key'),
  UPLOADS_PER_KEY: count.default(200).describe('Uploads for each key, unfinished or kept'),
  UPLOAD_BYTES_PER_KEY: bytes.default(50 * GIB).describe('Bytes of all uploads of a key'),
  EVENT_STREAMS_PER_KEY: count.default(50).describe('Open event streams for each key'),
  CPU_SECONDS_PER_MINUTE: z.coerce
    .number()
    .positive()
    .optional()
    .describe(
      'Processor seconds per minute for each key; above it, the key’s further jobs wait like jobs of priority `low`, and its tools run at nice 19; unset: no limit',
    ),
  TRANSCRIPT_MINUTES_PER_DAY: count
    .optional()
    .describe(
      'Minutes of audio to transcribe per day for each key; above it, transcripts get 429; unset: no limit',
    ),
  SENDS_PER_MINUTE: sendLimits
    .default({ whatsapp: 20, xmpp: 60, telegram: 60, 'whatsapp-cloud': 60 })
    .describe(
      'Messages per minute for each instance: one number, or one for each network; 0 means no limit; a telegram group gets at most 20, a whatsapp-cloud recipient 10; default: `whatsapp:20,xmpp:60,telegram:60,whatsapp-cloud:60`',
    ),
  WEBHOOK_SCHEDULE_SECONDS: numbers
    .pipe(z.array(z.number().min(0)).min(1))
    .default([0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400])
    .describe(
      'When webhooks, transcripts and uploads to destinations are attempted, seconds after the event; each interval counts from the end of the previous attempt',
    ),
  VOICE_ON_UNKNOWN: z
    .enum(['keep', 'resend'])
    .default('keep')
    .describe(
      'What to do with a voice message if another server’s answer was lost: `keep` it as unknown, or `resend` it',
    ),
  DISK_RESERVE_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe(
      'Disk space to keep free, bytes; below it, jobs wait and uploads are rejected; 0 turns the check off; default: 1 GiB, or 5 % of a volume under 20 GiB',
    ),
  JOB_LOCK_SECONDS: seconds
    .default(30)
    .describe('How long a worker may be silent before another one takes over its job'),
  WATCHDOG_SECONDS: z.coerce
    .number()
    .min(0)
    .default(60)
    .describe(
      'How long a free worker may ignore queued jobs, or a process’s event loop may hang, before the process exits to be restarted; 0 turns this off',
    ),
  FFMPEG_PATH: z
    .string()
    .transform((path) => (path.includes('/') ? resolve(path) : path))
    .optional()
    .describe(
      'Path of ffmpeg, or its name on the PATH. ffprobe must be in the same folder or on the PATH. Default: `.ffmpeg/bin/ffmpeg` if `script/ffmpeg` has built it, else the first on the PATH',
    ),
  SANDBOX: z
    .enum(['required', 'auto', 'off'])
    .default('required')
    .describe(
      'What to do if ffmpeg cannot run in a sandbox: `required` does not start, `auto` logs a warning; `off` uses no sandbox',
    ),
  SHUTDOWN_SECONDS: seconds.default(30).describe('How long running jobs may take to finish after SIGTERM'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl
    .optional()
    .describe('Collector of traces (OTLP over HTTP, at its `/v1/traces`); unset: no traces'),
  OTEL_EXPORTER_OTLP_HEADERS: traceHeaders
    .optional()
    .describe('Headers for the collector, as `name=value` separated by commas, percent-encoded'),
  OTEL_TRACES_SAMPLER: z
    .enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ])
    .default('parentbased_always_on')
    .describe('Which traces are kept; `parentbased_…` follows the caller’s decision, if it has a trace'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('Fraction that `…traceidratio` keeps, from 0 to 1'),
  SOUNDPOST_SERVER: urlWithoutPassword
    .optional()
    .describe(
      'Service for the command line, like its `--server`; unset: see [command line](command-line.md)',
    ),
  SOUNDPOST_API_KEY: z.string().optional().describe('API key of the command line for that service'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Lowest severity to log'),
});

const ALL = ['api', 'gateway', 'worker'] as const;

/**
 * Variables that hold secrets, and the processes that read them: a worker reads files of strangers,
 * so the chart and docker-compose.yml give a process no other; REDIS_URL, which all read, may hold
 * a password too.
 */
export const secretReaders = {
  SECRET_KEY: ALL,
  BOOTSTRAP_API_KEY: ['api'],
  ADMIN_KEY: ['api'],
  GATEWAY_EVENTS_TOKEN: ['api'],
  GATEWAY_API_KEY: ['gateway', 'worker'],
  TRANSCRIBER_API_KEY: ['gateway', 'worker'],
  METRICS_TOKEN: ALL,
  S3_ACCESS_KEY_ID: ALL,
  S3_SECRET_ACCESS_KEY: ALL,
  OUTBOUND_PROXY: ALL,
  OTEL_EXPORTER_OTLP_HEADERS: ALL,
} as const satisfies Partial<Record<keyof typeof Environment.shape, readonly (typeof ALL)[number][]>>;
