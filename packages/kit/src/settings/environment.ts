/**
 * All environment variables, with form, default and meaning (decisions E). All are optional: the
 * defaults let `script/server` work on a bare machine. docs/reference/configuration.md is made from this.
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
  API_PORT: port.default(8080).describe('Port of the API; 0 takes a free one'),
  GATEWAY_PORT: port.default(8081).describe('Port of the messaging gateway; 0 takes a free one'),
  WORKER_PORT: port
    .default(8082)
    .describe('Port for health and metrics of a lone worker; 0 takes a free one'),
  PUBLIC_URL: httpUrl
    .optional()
    .describe(
      'Absolute base of statusUrl, Location and outputFile.url; default `http://127.0.0.1:<API_PORT>`',
    ),
  GATEWAY_PUBLIC_URL: httpUrl
    .optional()
    .describe(
      'Absolute base of media URLs, and where browsers that show the console reach the gateway; default `http://127.0.0.1:<GATEWAY_PORT>`',
    ),
  GATEWAY_URL: urlWithoutPassword
    .optional()
    .describe('Gateway that voice messages are sent through; default: this project’s own'),
  GATEWAY_KIND: z
    .enum(['soundpost', 'other', 'waha', 'wuzapi'])
    .default('soundpost')
    .describe(
      'What GATEWAY_URL leads to: this project’s gateway, another server with its interface, WAHA, or wuzapi',
    ),
  GATEWAY_BRAND: z
    .string()
    .regex(/^[A-Za-z]+$/)
    .default('Messenger')
    .describe('Brand segment of the send path that the worker calls'),
  GATEWAY_BRANDS: list
    .default(['Messenger', 'WhatsApp'])
    .describe('Brand segments that the gateway answers to'),
  WHATSAPP_VERSION: z
    .string()
    .regex(/^\d{1,4}\.\d{1,5}\.\d{1,12}$/, 'must be three numbers such as 2.3000.1035194821')
    .transform((text): [number, number, number] => {
      const [major = 0, minor = 0, revision = 0] = text.split('.').map(Number);
      return [major, minor, revision];
    })
    .optional()
    .describe(
      'Version of its web client that WhatsApp is told; unset: that of the package, and after a refusal (405) the one that web.whatsapp.com names',
    ),
  GATEWAY_ANSWERS: z
    .enum(['contract', 'public'])
    .default('contract')
    .describe(
      'Whether the gateway answers, and tells events, as its own interface says, or, for clients of the public server, as that one does',
    ),
  GATEWAY_EVENTS_URL: httpUrl
    .optional()
    .describe('Where the gateway posts messages.update; default: the API’s `/hooks/gateway`'),
  GATEWAY_EVENTS_TOKEN: z
    .string()
    .regex(/^[\w.~-]{16,}$/, 'must be 16 or more letters, digits or - . _ ~')
    .optional()
    .describe(
      'Lets another server post its events to the API’s `/hooks/gateway?token=<it>` or with `Authorization: Bearer <it>`; unset: only signed events are taken',
    ),
  GRAPH_URL: urlWithoutPassword
    .default('https://graph.facebook.com/v23.0')
    .describe(
      'Base of the Graph API, with its version, for instances on whatsapp-cloud; a private address needs OUTBOUND_ALLOW',
    ),
  TELEGRAM_URL: urlWithoutPassword
    .default('https://api.telegram.org')
    .describe(
      'Base of the Bot API for instances on telegram, such as a local Bot API server; a private address needs OUTBOUND_ALLOW',
    ),
  TRANSCRIBER_URL: urlWithoutPassword
    .optional()
    .describe(
      'Base, with its `/v1`, of a server that has OpenAI’s `POST /v1/audio/transcriptions`, such as `http://127.0.0.1:8000/v1`; see [transcripts](../how-to/transcripts.md); unset: no transcripts',
    ),
  TRANSCRIBER_API_KEY: z
    .string()
    .min(1)
    .optional()
    .describe('Key of TRANSCRIBER_URL, sent as `Authorization: Bearer`; unset: none is sent'),
  TRANSCRIBER_MODEL: z
    .string()
    .min(1)
    .default('whisper-1')
    .describe('Model that the transcriber is asked for; it has to know `verbose_json`'),
  TRANSCRIBER_TIMEOUT_SECONDS: seconds
    .default(1800)
    .describe(
      'How long the transcriber may take for a part, seconds; a part is 13 minutes of audio at most, and 25 MB',
    ),
  TRANSCRIBER_PARTS: count
    .default(2)
    .describe('Parts that are sent to the transcriber at a time, by all workers together'),
  DATA_DIR: z
    .string()
    .min(1)
    .default('./data')
    .transform((path) => resolve(path))
    .describe('Folder of everything kept on disk'),
  REDIS_URL: z
    .string()
    .regex(
      /^(rediss?(\+(sentinel|cluster))?|unix):\/\//,
      'must begin with redis://, redis+sentinel://, redis+cluster:// (rediss… for TLS) or unix://',
    )
    .optional()
    .describe(
      'Redis or Valkey, see [operations](../operations/redis.md); unset: an embedded Redis under DATA_DIR',
    ),
  REDIS_CA_FILE: z
    .string()
    .optional()
    .describe(
      'PEM file of the authorities that the certificates of rediss:// are checked with; default: Node’s',
    ),
  REDIS_CERT_FILE: z
    .string()
    .optional()
    .describe('PEM file of the certificate shown to a rediss:// that asks for one; with REDIS_KEY_FILE'),
  REDIS_KEY_FILE: z.string().optional().describe('PEM file of the key of REDIS_CERT_FILE'),
  REDIS_DEADLINE_SECONDS: seconds
    .default(0.9)
    .describe(
      'How long a request waits for Redis, all its commands together, seconds; after that the request is answered 503. A submission that Redis does not take in this time is never started',
    ),
  REDIS_WAIT_REPLICAS: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe(
      'Replicas of Redis that must have a submission before it is answered 202; fewer within half a second: 503',
    ),
  STORAGE_URL: bucketUrl
    .optional()
    .describe('Bucket for uploads, results and media, `s3://bucket/prefix`; unset: files under DATA_DIR'),
  S3_ENDPOINT: httpUrl
    .optional()
    .describe('Base address of an S3 server of one’s own; unset: Amazon’s in S3_REGION'),
  S3_PUBLIC_ENDPOINT: httpUrl
    .optional()
    .describe(
      'Base address at which callers reach the bucket; set: a download is a redirect to it; unset: the bytes go through the API',
    ),
  S3_REGION: z.string().min(1).default('us-east-1').describe('Region of the bucket'),
  S3_ACCESS_KEY_ID: z
    .string()
    .optional()
    .describe('Access key of the bucket; unset: as the AWS SDK finds one, such as the role of a machine'),
  S3_SECRET_ACCESS_KEY: z.string().optional().describe('Secret of S3_ACCESS_KEY_ID'),
  STORAGE_DEADLINE_SECONDS: seconds
    .default(10)
    .describe(
      'How long the storage may take to answer, seconds; after that, or at once while it is known to be away, requests that need it are answered 503',
    ),
  SECRET_KEY: z
    .string()
    .min(32, 'must have at least 32 bytes')
    .optional()
    .describe(
      'Root of all derived secrets; unset: made once in `DATA_DIR/secret-key`; with REDIS_URL it, or SECRET_KEY_FILE, must be set',
    ),
  SECRET_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File that holds SECRET_KEY where that is unset, on a disk that all processes share; made at the first start, except with STORAGE_URL; unset: none',
    ),
  ADOPT: z
    .enum(['0', '1'])
    .default('0')
    .describe(
      '1 for one start that takes Redis and the results as they are, though they do not belong together (`--adopt`); see [disasters](../how-to/disasters.md)',
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
  ADMIN_KEY: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .describe('Password of the board of the queues at `/admin/queues` of the API; unset: there is none'),
  CONSOLE: z
    .enum(['on', 'off'])
    .default('on')
    .describe('Whether the API serves its console at `/`; it opens nothing without an API key'),
  METRICS_TOKEN: z
    .string()
    .min(16, 'must have at least 16 characters')
    .optional()
    .describe('Bearer token of `GET /metrics`; unset: only requests from this machine are answered'),
  OUTBOUND_ALLOW: z
    .string()
    .default('')
    .describe('Comma-separated `host-or-CIDR:port` that may be reached although not public'),
  OUTBOUND_PORTS: numbers
    .pipe(z.array(z.int().min(1).max(65_535)))
    .default([80, 443, 8080, 8443])
    .describe('Ports that public source and webhook URLs may name'),
  OUTBOUND_PROXY: z
    .url({ protocol: /^http$/ })
    .transform((url) => new URL(url))
    .optional()
    .describe(
      'Forward proxy (`http://[user:password@]host:port`) that whatever `OUTBOUND_ALLOW` does not open goes through, by CONNECT to the checked address; accounts on XMPP do not; unset: none',
    ),
  TRUST_PROXY: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('Number of proxies in front whose forwarded address is believed'),
  CORS_ORIGINS: list
    .default([])
    .describe(
      'Comma-separated origins whose web pages may call the API and the gateway, such as `https://app.example.com`; `*` for any; the console may call both in any case',
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
  UPLOADS_PER_KEY: count.default(200).describe('Uploads a key may have that are unfinished or not expired'),
  UPLOAD_BYTES_PER_KEY: bytes.default(50 * GIB).describe('Bytes that the uploads of a key may have together'),
  EVENT_STREAMS_PER_KEY: count.default(50).describe('Event streams a key may have open'),
  CPU_SECONDS_PER_MINUTE: z.coerce
    .number()
    .positive()
    .optional()
    .describe(
      'Seconds of processor time that the jobs of a key may use a minute; above it its further jobs wait their turn at the weight of `low`, and its tools run at nice 19; unset: as many as there are',
    ),
  TRANSCRIPT_MINUTES_PER_DAY: count
    .optional()
    .describe(
      'Minutes of audio that the transcriber may be sent a day and key; after that transcripts answer 429; unset: no limit',
    ),
  SENDS_PER_MINUTE: sendLimits
    .default({ whatsapp: 20, xmpp: 60, telegram: 60, 'whatsapp-cloud': 60 })
    .describe(
      'Messages that an instance may send in a minute, one number or one by network, 0 for no limit; a group on telegram gets 20 of them at most, a recipient on whatsapp-cloud 10; default: `whatsapp:20,xmpp:60,telegram:60,whatsapp-cloud:60`',
    ),
  WEBHOOK_SCHEDULE_SECONDS: numbers
    .pipe(z.array(z.number().min(0)).min(1))
    .default([0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400])
    .describe(
      'When a webhook, a transcript or a put to a destination is attempted, seconds after the event; the distances between the entries count from the end of the attempt before',
    ),
  VOICE_ON_UNKNOWN: z
    .enum(['keep', 'resend'])
    .default('keep')
    .describe('What becomes of a voice message whose answer another server’s gateway lost'),
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
  FFMPEG_PATH: z
    .string()
    .transform((path) => (path.includes('/') ? resolve(path) : path))
    .optional()
    .describe(
      'ffmpeg, with an ffprobe beside it or on the PATH; a name without a slash is looked for on the PATH; default: `.ffmpeg/bin/ffmpeg` of the checkout where `script/ffmpeg` has built it, else the first on the PATH',
    ),
  SANDBOX: z
    .enum(['required', 'auto', 'off'])
    .default('required')
    .describe(
      'Whether a process that runs ffmpeg may start where it cannot be confined: `required` refuses, `auto` says so in the log, `off` does not try',
    ),
  SHUTDOWN_SECONDS: seconds.default(30).describe('How long running jobs may finish after SIGTERM'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl
    .optional()
    .describe(
      'Collector that traces are sent to (OTLP over HTTP, at `/v1/traces` under it); unset: no traces',
    ),
  OTEL_EXPORTER_OTLP_HEADERS: traceHeaders
    .optional()
    .describe('Headers of what is sent to it, `name=value` separated by commas, percent-encoded'),
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
    .describe('Which traces are kept; `parentbased_…`: where the caller has a trace, those that it keeps'),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('The part that is kept by `…traceidratio`, from 0 to 1'),
  SOUNDPOST_SERVER: urlWithoutPassword
    .optional()
    .describe(
      'Service that the command line works with, as with its `--server`; unset: see [command line](command-line.md)',
    ),
  SOUNDPOST_API_KEY: z.string().optional().describe('Key that the command line shows to that service'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least severe records that are written'),
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
