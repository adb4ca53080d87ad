/** What the routes work with; wired in active.ts. */

import type { Instances } from 'soundpost-chat/instances';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { Workspaces } from 'soundpost-chat/workspace';
import type { AuditLog, Logger } from 'soundpost-kit/observe/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { EventReader } from './event-reader.ts';
import type { InboxSessions } from './inbox/inbox-sessions.ts';
import type { Viewers } from './inbox/viewer.ts';
import type { MessageSender } from './message-sender.ts';
import type { WrongKeys } from './middleware/wrong-keys.ts';
import type { OutgoingOrder } from './outgoing-order.ts';
import type { Sessions } from './sessions.ts';
import type { TextSender } from './text-sender.ts';
import type { VoiceNotes } from './voice-notes.ts';
import type { EventDeliveries } from './webhooks/event-deliveries.ts';
import type { Webhooks } from './webhooks/webhooks.ts';

export interface GatewayServices {
  readonly wrongKeys: WrongKeys;
  readonly instances: Instances;
  readonly sessions: Sessions;
  readonly log: MessageLog;
  readonly sender: MessageSender;
  readonly texts: TextSender;
  readonly order: OutgoingOrder;
  readonly notes: VoiceNotes;
  readonly workspaces: Workspaces;
  readonly webhooks: Webhooks;
  readonly deliveries: EventDeliveries;
  readonly outbound: Outbound;
  readonly redis: Redis;
  readonly events: EventReader;
  readonly inboxSessions: InboxSessions;
  readonly viewers: Viewers;
  /** Aborted when the gateway stops, or another process of it takes over. */
  readonly closing: AbortSignal;
  readonly logger: Logger;
  readonly audit: AuditLog;
  readonly brands: readonly string[];
  /** Whether it answers as the public server does where that differs. */
  readonly answersAsPublic: boolean;
}
