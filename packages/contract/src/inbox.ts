/** The data behind the voice inbox. Its page is the only client: others are promised nothing. */
import { z } from 'zod';
import type { MessageContent } from './gateway.ts';
import type { NamedGatewayEvent } from './gateway-events.ts';
import type { ConnectionState, TransportKind } from './gateway-instances.ts';
import { Presence } from './gateway-operations.ts';
import type { MessageKey, MessageStatus } from './job.ts';

/** `POST /session`: the code of a one-time link. */
export const RedeemRequest = z.object({ code: z.string().min(1).max(128) });
/** `as` is the JID of the person being played, here and below. */
export const ReplyRequest = z.object({ as: z.string(), text: z.string().trim().min(1).max(4096) });
export const TypingRequest = z.object({ as: z.string(), presence: Presence });
export const CallRequest = z.object({ as: z.string() });
export const BlockRequest = z.object({ as: z.string(), blocked: z.boolean() });
export const JoinRequest = z.object({ inviteCode: z.string().min(1).max(128) });

export interface InboxSession {
  /** Opens the inbox as `Authorization: Bearer …`, for 12 hours. */
  readonly session: string;
}

export interface InboxInstance {
  readonly id: string;
  readonly name: string;
  readonly transport: TransportKind;
  readonly state: ConnectionState;
  /** JID of its own account; empty while unknown. */
  readonly ownJid: string;
  /** Whether nobody on its network can be played. */
  readonly readOnly: boolean;
}

export interface InboxChat {
  readonly jid: string;
  readonly name: string;
  readonly isGroup: boolean;
  /** Time of the last message, ms since 1970; null if none is known. */
  readonly updatedAtMs: number | null;
  readonly unreadCount: number;
  readonly lastMessage: InboxMessage | null;
}

export interface InboxMessage {
  readonly key: MessageKey;
  /** Its author, if that is somebody else. */
  readonly authorJid?: string | undefined;
  readonly authorName?: string | undefined;
  readonly message: MessageContent;
  readonly context: {
    /** The message that this one answers, as far as known. */
    readonly quoted?: { readonly id: string; readonly text?: string | undefined } | undefined;
    /** JIDs, or numbers as the caller wrote them. */
    readonly mentioned: readonly string[];
    readonly mentionsEveryOne: boolean;
  };
  readonly status: MessageStatus;
  readonly edited: boolean;
  readonly timestampSeconds: number;
}

/** Somebody whom the inbox can play. */
export interface InboxPerson {
  readonly jid: string;
  readonly name: string;
  readonly hasBlocked: boolean;
}

export interface ReplyAnswer {
  /** False where one of the two has blocked the other. */
  readonly delivered: boolean;
}

export interface CallAnswer {
  readonly callId: string;
}

/** `data` of each event of the feed. */
export interface InboxEvent {
  readonly instanceId: string;
  readonly envelope: InboxEventEnvelope;
}

export type InboxEventEnvelope = NamedGatewayEvent;
