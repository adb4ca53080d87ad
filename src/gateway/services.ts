/** What the application and its routes use; wired in active.ts. */

import type { Instances } from 'soundpost-chat/instances';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { AuditLog } from 'soundpost-kit/observe/logger';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import type { SandboxLevel } from 'soundpost-media/sandbox';
import type { Converter } from './converter.ts';
import type { EventReader } from './event-reader.ts';
import type { GatewayOptions } from './gateway-options.ts';
import type { InboxSessions, Viewers } from './inbox/viewer.ts';
import type { MessageSender } from './message-sender.ts';
import type { Access, WrongKeys } from './middleware/access.ts';
import type { OutgoingOrder } from './outgoing.ts';
import type { Sessions } from './sessions.ts';
import type { TextSender } from './text-sender.ts';
import type { VoiceNotes } from './voice-notes.ts';
import type { EventDeliveries } from './webhooks/event-deliveries.ts';
import type { Webhooks } from './webhooks/webhooks.ts';

export interface GatewayServices
  extends Pick<GatewayOptions, 'brands' | 'storage' | 'probes' | 'outbound' | 'logger' | 'observer'>,
    Required<Pick<GatewayOptions, 'answersAsPublic' | 'trustProxy' | 'corsOrigins'>> {
  /** Absolute base URL without trailing slash. */
  readonly publicUrl: string;
  readonly access: Access;
  readonly wrongKeys: WrongKeys;
  readonly instances: Instances;
  readonly sessions: Sessions;
  readonly log: MessageLog;
  readonly sender: MessageSender;
  readonly texts: TextSender;
  readonly order: OutgoingOrder;
  readonly notes: VoiceNotes;
  readonly converter: Converter;
  readonly workspaces: Workspaces;
  readonly webhooks: Webhooks;
  readonly deliveries: EventDeliveries;
  readonly redis: Redis;
  /** How ffmpeg is confined. */
  readonly sandbox: SandboxLevel;
  readonly events: EventReader;
  readonly inboxSessions: InboxSessions;
  readonly viewers: Viewers;
  /** Aborted when the gateway stops, or another process takes over. */
  readonly closing: AbortSignal;
  readonly audit: AuditLog;
}
