/** What the routes work with; wired in start.ts. */
import type { AuditLog, Logger } from '../logger.ts';
import type { SandboxLevel } from '../media/sandbox.ts';
import type { Outbound } from '../outbound/outbound.ts';
import type { Redis } from '../queue/redis.ts';
import type { Storage } from '../storage/storage.ts';
import type { Idempotency } from './idempotency.ts';
import type { InboxSessions } from './inbox/inbox-sessions.ts';
import type { LiveEvents } from './inbox/live-events.ts';
import type { Viewers } from './inbox/viewer.ts';
import type { Instances } from './instances.ts';
import type { MessageLog } from './message-log.ts';
import type { Access } from './middleware/access.ts';
import type { WrongKeys } from './middleware/wrong-keys.ts';
import type { OutgoingOrder } from './outgoing-order.ts';
import type { Forwarding } from './replicas/forwarding.ts';
import type { Sessions } from './sessions.ts';
import type { TextSender } from './text-sender.ts';
import type { VoiceNotes } from './voice-notes.ts';
import type { VoiceSender } from './voice-sender.ts';
import type { Webhooks } from './webhooks/webhooks.ts';
import type { Workspaces } from './workspace.ts';

export interface GatewayServices {
  readonly access: Access;
  readonly wrongKeys: WrongKeys;
  readonly instances: Instances;
  readonly sessions: Sessions;
  readonly forwarding: Forwarding;
  readonly log: MessageLog;
  readonly sender: VoiceSender;
  readonly texts: TextSender;
  readonly order: OutgoingOrder;
  readonly notes: VoiceNotes;
  readonly idempotency: Idempotency;
  readonly workspaces: Workspaces;
  readonly webhooks: Webhooks;
  readonly outbound: Outbound;
  readonly redis: Redis;
  readonly storage: Storage;
  readonly events: LiveEvents;
  readonly inboxSessions: InboxSessions;
  readonly viewers: Viewers;
  /** Aborted when the gateway stops. */
  readonly closing: AbortSignal;
  readonly logger: Logger;
  readonly audit: AuditLog;
  /** How ffmpeg is confined. */
  readonly sandbox: SandboxLevel;
  readonly brands: readonly string[];
  /** Proxies in front whose forwarded address is believed. */
  readonly trustProxy: number;
  /** Absolute base of the gateway, without a slash at the end. */
  readonly publicUrl: () => string;
}
