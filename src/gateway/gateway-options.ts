/** Options and results of starting the gateway as a process. */

import type { Logger } from 'soundpost-base/logger';
import type { ElectionSetting } from 'soundpost-chat/lease/election';
import type { ConnectionState, TransportKind } from 'soundpost-contract/gateway-instances';
import type { Around } from 'soundpost-kit/http/watched';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import type { Probes } from 'soundpost-kit/observe/probes';
import type { Tracing } from 'soundpost-kit/observe/tracing/tracing';
import type { connectRedis } from 'soundpost-kit/redis/connection';
import type { Storage } from 'soundpost-kit/storage/storage';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import type { MediaTools } from 'soundpost-media/run';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { Transcriber } from '../followups/transcripts/client.ts';
import type { SendLimits } from './outgoing.ts';

export interface GatewayOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** Absolute base of media URLs without trailing slash. Default: the server's own address. */
  readonly publicUrl: string | undefined;
  /** Brand segments of the send path, such as `Messenger`. */
  readonly brands: readonly string[];
  /** Whether it answers like the public server where they differ. Default false. */
  readonly answersAsPublic?: boolean;
  /** The gateway's own key. */
  readonly apiKey: string;
  /** HMAC key for stored tokens and sessions; the same in every process of the gateway. */
  readonly keyPepper: Buffer;
  /** 32 bytes: AES-256 key for stored passwords and webhook secrets. */
  readonly encryptionKey: Buffer;
  /** As REDIS_URL, see docs/operations/redis.md "Connect". */
  readonly redisUrl: string;
  /** For a redisUrl with TLS. */
  readonly redisTls?: Parameters<typeof connectRedis>[0]['tls'];
  /** What the commands of a request may take together; default 900. */
  readonly redisDeadlineMs?: number | undefined;
  readonly storage: Storage;
  /** The process's probes, including the storage's. */
  readonly probes: Probes;
  readonly outbound: Outbound;
  readonly tools: MediaTools;
  readonly workspaces: Workspaces;
  /** For `POST /process-audio`; undefined: it does not transcribe. */
  readonly transcriber?: Transcriber | undefined;
  /** How long a message and its media are kept, seconds. */
  readonly mediaTtlSeconds: number;
  /** Version of the client to report to WhatsApp; default: the package's own. */
  readonly whatsappVersion?: [number, number, number] | undefined;
  /** Base of Meta's Graph API with its version, without trailing slash; default: as GRAPH_URL. */
  readonly graphUrl?: string;
  /** Base of Telegram's Bot API, without trailing slash; default: as TELEGRAM_URL. */
  readonly telegramUrl?: string;
  /** Where messages.update is posted, with its `whsec_` secret; undefined posts nothing. */
  readonly events: { readonly url: string; readonly secret: string } | undefined;
  readonly logger: Logger;
  /** Messages per 60 s and instance, by network; 0: no limit. Default: as SENDS_PER_MINUTE. */
  readonly sendsPerMinute?: SendLimits;
  /** Attempts at an instance's webhook, seconds after the event (decisions D). */
  readonly webhookSchedule?: readonly number[];
  /** Number of proxies whose forwarded address is trusted. Default 0. */
  readonly trustProxy?: number;
  /** Origins that can call it, including the console's; `*` for any. Default: none. */
  readonly corsOrigins?: readonly string[];
  /** Limit for preparing and sending, beside the delay, ms. Default 30 s (decisions B "Audio"). */
  readonly sendTimeoutMs?: number;
  readonly observer?: Observer | undefined;
  readonly tracing?: Tracing;
  readonly around?: Around;
  /** Decides which of several processes on one Redis serves. */
  readonly election?: ElectionSetting;
}

export interface RunningGateway {
  readonly host: string;
  readonly port: number;
  /** Base of the links below and of media URLs. */
  readonly publicUrl: string;
  /** A link to the inbox, valid for 10 minutes and one use. */
  inboxLink(): Promise<string>;
  /** The instances open in this process: none while it stands by. */
  instanceStates(): Promise<
    readonly { readonly transport: TransportKind; readonly state: ConnectionState }[]
  >;
  /** Takes no more requests, abandons sends not yet with the network (503), finishes the rest. */
  close(): Promise<void>;
}
