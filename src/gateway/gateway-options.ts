/** What the gateway as a process is given, and what it gives whoever started it. */

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
import type { SendLimits } from './outgoing.ts';

export interface GatewayOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Absolute base of media URLs, without a slash at the end. Default: the address that the server listens on. */
  readonly publicUrl: string | undefined;
  /** Brand segments of the send path, such as `Messenger`. */
  readonly brands: readonly string[];
  /** Whether it answers as the public server does where that differs. Default false. */
  readonly answersAsPublic?: boolean;
  /** The gateway's own key. */
  readonly apiKey: string;
  /** HMAC key under which tokens and sessions are stored; the same in every process of the gateway. */
  readonly keyPepper: Buffer;
  /** 32 bytes: AES-256 key under which accounts' passwords and webhook secrets are stored. */
  readonly encryptionKey: Buffer;
  /** As REDIS_URL, see docs/operations.md "Redis". */
  readonly redisUrl: string;
  /** For a redisUrl with TLS. */
  readonly redisTls?: Parameters<typeof connectRedis>[0]['tls'];
  readonly storage: Storage;
  /** Those of the process, the storage among them. */
  readonly probes: Probes;
  readonly outbound: Outbound;
  readonly tools: MediaTools;
  readonly workspaces: Workspaces;
  /** How long a message and its media are kept, seconds. */
  readonly mediaTtlSeconds: number;
  /** Which version of its client WhatsApp is told; default: the package's own. */
  readonly whatsappVersion?: [number, number, number] | undefined;
  /** Where messages.update is posted, and the `whsec_` secret that signs it; undefined posts nothing. */
  readonly events: { readonly url: string; readonly secret: string } | undefined;
  readonly logger: Logger;
  /** Messages that an instance may send within 60 s, by network; 0 is no limit. Default: whatsapp 20, xmpp 60. */
  readonly sendsPerMinute?: SendLimits;
  /** When an instance's webhook is told of an event, seconds after it (decisions D). */
  readonly webhookSchedule?: readonly number[];
  /** Proxies in front whose forwarded address is believed. Default 0. */
  readonly trustProxy?: number;
  /** Origins whose web pages may call it, the console’s among them; `*` for any. Default: none. */
  readonly corsOrigins?: readonly string[];
  /** How long preparing and sending a message may take besides its delay, ms. Default 30 s (decisions B "Audio"). */
  readonly sendTimeoutMs?: number;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
  readonly around?: Around;
  /** Which of several processes on one Redis serves. */
  readonly election?: ElectionSetting;
}

export interface RunningGateway {
  readonly host: string;
  readonly port: number;
  /** Base of the links below and of media URLs. */
  readonly publicUrl: string;
  /** A link to the inbox that is good for 10 minutes and one use. */
  inboxLink(): Promise<string>;
  /** The instances that are open in this process: none while it stands by. */
  instanceStates(): Promise<
    readonly { readonly transport: TransportKind; readonly state: ConnectionState }[]
  >;
  /** Stops taking requests, gives up sends that have not reached the network (503), and lets the rest finish. */
  close(): Promise<void>;
}
