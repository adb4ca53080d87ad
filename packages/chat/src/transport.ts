/**
 * What a chat network has to do for the gateway. The gateway prepares and stores the media, keeps the log of
 * messages, orders and limits what goes out, answers callers and posts events; a transport only finds people, sends,
 * and reports what happens.
 *
 * What not every network can do is an optional member: where it is absent the operation answers 501 `unsupported`,
 * so that nothing can pretend to have succeeded.
 */
import type { AudioMessage, MessageContent } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type {
  ConnectionState,
  InstanceSettings,
  TransportKind,
  XmppConnection,
} from 'soundpost-contract/gateway-instances';
import type { PrivacySettings } from 'soundpost-contract/gateway-operations';
import type { MessageKey, MessageStatus } from 'soundpost-contract/job';
import type { Address } from './address.ts';
import type { Instance } from './instances.ts';

/** Somebody, or a group, that the instance can write to. */
export interface Chat {
  readonly jid: string;
  readonly name: string;
  readonly isGroup: boolean;
}

/** A chat that the network itself remembers, besides those that the gateway's log knows. */
export interface NetworkChat extends Chat {
  /** Time of the last message, ms since 1970; null where the network does not say. */
  readonly updatedAtMs: number | null;
}

export interface Participant {
  readonly jid: string;
  readonly name: string;
  readonly admin: 'superadmin' | 'admin' | null;
}

export interface Contact extends Chat {
  readonly isSaved: boolean;
  readonly blocked: boolean;
  readonly profilePicUrl?: string;
}

export interface MessageContext {
  /** The message that this one answers; its text as the caller gave it, for networks that carry the quotation. */
  readonly quoted: { readonly id: string; readonly text: string | undefined } | undefined;
  readonly mentioned: readonly string[];
  readonly mentionsEveryOne: boolean;
  readonly linkPreview: boolean;
}

interface Outgoing {
  /**
   * Chosen by the gateway, and the same when a send is repeated after a crash: a network that already took a
   * message with this id takes it as that message.
   */
  readonly messageId: string;
  readonly chat: Chat;
}

export interface OutgoingVoice extends Outgoing {
  /** A finished Ogg Opus voice note on the local disk, for networks that take the file itself. */
  readonly file: string;
  /** Its length, counted. */
  readonly durationMs: number;
  readonly content: AudioMessage;
  readonly context: MessageContext;
}

export interface OutgoingText extends Outgoing {
  readonly text: string;
  /** Default: it answers nothing and mentions nobody. */
  readonly context?: MessageContext;
}

/** An invitation of one person to a group of the instance. */
export interface OutgoingInvite extends Outgoing {
  readonly group: Address;
  /** As {@link Session.inviteCode} gave them for this group. */
  readonly inviteUrl: string;
  readonly inviteCode: string;
  readonly description: string;
  /** Description and address together, as people read it. */
  readonly text: string;
}

/** A change of an own message. The gateway has made sure that the message exists, is own, and went to this chat. */
export interface MessageEdit {
  readonly chat: Chat;
  readonly key: MessageKey;
  /** A text message gets this as its text, a voice message as its caption. */
  readonly text: string;
  readonly kind: 'text' | 'voice';
}

export type Presence = 'composing' | 'recording' | 'paused' | 'available' | 'unavailable';

/** What a person has to bring together for pairing the instance with an account (`GET /instance/connect`). */
export interface Pairing {
  /** To be typed on the phone; null where only the picture works. */
  readonly pairingCode: string | null;
  /** What the picture holds. */
  readonly code: string;
  /** The picture as `data:image/png;base64,…`. */
  readonly base64: string;
  /** How many have been made since connecting began. */
  readonly count: number;
}

/** An instance on its network. Every method rejects with a GatewayError that names what the caller can do. */
export interface Session {
  /** JID of the instance's own account; empty while it is not known yet. */
  readonly ownJid: string;
  state(): ConnectionState;
  /**
   * Begins to connect after a logout or an end of the connection; while open or connecting it changes nothing.
   * @param pairingNumber digits of the phone on which a pairing code is to be typed; for networks that pair by one
   */
  connect(pairingNumber?: string): Promise<void>;
  /** Leaves the network. The gateway remembers it, so that a restart does not connect again. */
  logout(): Promise<void>;
  /** What is needed for pairing right now; undefined when nothing is. */
  pairing?(): Pairing | undefined;
  /** Finds who is meant in the instance's network. Throws unknown_recipient. @param field named in the error. */
  resolve(address: Address, field: string): Promise<Chat>;
  /** Resolves when the network took the message. Sending the same messageId again changes nothing. */
  sendVoice(message: OutgoingVoice, signal: AbortSignal): Promise<void>;
  sendText?(message: OutgoingText, signal: AbortSignal): Promise<void>;
  showPresence(chat: Chat, presence: Presence): Promise<void>;
  /** Everybody in the address book and every group. */
  contacts(): Promise<Contact[]>;
  /** Chats of the network's archive; the gateway adds those of its own log. */
  chats?(): Promise<NetworkChat[]>;
  /** Throws group_not_found. */
  participants?(group: Address): Promise<Participant[]>;
  /** Throws not_editable where the network cannot change a message of this kind. */
  editMessage?(edit: MessageEdit): Promise<void>;
  /** Invites one person; whoever is let in by it needs nothing else. */
  sendInvite?(invite: OutgoingInvite, signal: AbortSignal): Promise<void>;
  /** The code that lets anybody in. Throws group_not_found. */
  inviteCode?(group: Address): Promise<{ inviteUrl: string; inviteCode: string }>;
  /** Makes the code useless and answers a new one. Throws group_not_found. */
  revokeInvite?(group: Address): Promise<{ inviteUrl: string; inviteCode: string }>;
  /** Enters the group that the code belongs to. Throws group_not_found. */
  acceptInvite?(inviteCode: string): Promise<{ groupJid: string }>;
  /** The chat is a person's, never a group's. */
  setBlocked?(chat: Chat, blocked: boolean): Promise<void>;
  /** In the words of {@link PrivacySettings}; the gateway refuses to pass on any other. */
  privacySettings?(): Promise<Readonly<Record<keyof PrivacySettings, string>>>;
  /**
   * The instance's settings changed. What a network need not do itself: groupsIgnore, readStatus, and the text after a
   * rejected call are seen to by the gateway.
   */
  applySettings?(settings: InstanceSettings): Promise<void>;
  /** Called for every offered call while `rejectCall` is set. */
  rejectCall?(call: IncomingCall): Promise<void>;
  /** The other side of the chats, where the gateway plays it too; the inbox is read-only without it. */
  readonly otherSide?: OtherSide;
}

/** Somebody whom the gateway plays. */
export interface Persona {
  readonly jid: string;
  readonly name: string;
  /** Whether this person has blocked the instance. */
  readonly hasBlocked: boolean;
}

export interface OtherSide {
  /** Whoever is on the other side of this chat looked at it. */
  opened(chatJid: string): Promise<void>;
  /** Whoever is on the other side of this chat started the player. */
  played(chatJid: string, messageId: string): Promise<void>;
  /** Who can be played in this chat; nobody where the other side is an instance with an inbox of its own. */
  people(chatJid: string): Promise<Persona[]>;
  /** Writes or speaks to the instance, or to the group of both. What a blocked person says bounces. */
  reply(chatJid: string, personJid: string, content: MessageContent): Promise<{ delivered: boolean }>;
  typing(chatJid: string, personJid: string, presence: Presence): Promise<void>;
  /** Rings until the instance rejects it or the person hangs up. */
  call(personJid: string): Promise<{ callId: string }>;
  hangUp(callId: string): Promise<void>;
  setBlocked(personJid: string, blocked: boolean): Promise<void>;
}

/** How a network tells what happened. Each call may come late, twice or out of order. */
export interface TransportReports {
  statusChanged(instanceId: string, messageId: string, status: MessageStatus): Promise<void>;
  messageArrived(instanceId: string, message: IncomingMessage): Promise<void>;
  /** Somebody changed a message of theirs. */
  messageEdited(instanceId: string, edit: IncomingEdit): Promise<void>;
  /** @param whoseJid default: the instance itself */
  presenceChanged(instanceId: string, chatJid: string, presence: Presence, whoseJid?: string): Promise<void>;
  connectionChanged(instanceId: string, state: ConnectionState, reason?: string): Promise<void>;
  callChanged(instanceId: string, call: IncomingCall): Promise<void>;
  participantsChanged(instanceId: string, change: ParticipantsChange): Promise<void>;
}

export type IncomingContent =
  | { readonly kind: 'text'; readonly text: string }
  /** Sound that the gateway keeps already. */
  | { readonly kind: 'voice'; readonly audio: AudioMessage }
  /** Sound on the local disk; the transport removes the file when the report has been taken. */
  | { readonly kind: 'file'; readonly path: string }
  /** Sound to be fetched as any other address that a stranger gave; where that fails the message reads `fallback`. */
  | { readonly kind: 'url'; readonly url: string; readonly fallback: string };

export interface IncomingMessage {
  readonly messageId: string;
  readonly chatJid: string;
  readonly isGroup: boolean;
  readonly authorJid: string;
  readonly authorName: string;
  /** Sent with the instance's account from another device. Default false. */
  readonly fromMe?: boolean;
  /** From the archive: neither unread nor announced. Default false. */
  readonly isHistory?: boolean;
  readonly timestampSeconds: number;
  readonly content: IncomingContent;
  readonly context: MessageContext;
}

export interface IncomingEdit {
  /** Id of the message that is changed. */
  readonly messageId: string;
  readonly authorJid: string;
  /** The new text; a voice message gets it as its caption. */
  readonly text: string;
}

export interface IncomingCall {
  readonly callId: string;
  readonly fromJid: string;
  readonly isVideo: boolean;
  readonly timestampSeconds: number;
  readonly status: 'offer' | 'reject' | 'timeout' | 'terminate' | 'accept';
}

export interface ParticipantsChange {
  readonly groupJid: string;
  readonly action: 'add' | 'remove' | 'promote' | 'demote';
  readonly participants: readonly string[];
  /** Who did it, where the network says so. */
  readonly authorJid?: string;
}

/** What a network needs for reaching an account; stored encrypted, never answered. */
type Connection = XmppConnection;

interface Opening {
  readonly instance: Instance;
  readonly connection: Connection | undefined;
  /** Whether to connect now; false for an instance that was logged out. */
  readonly connect: boolean;
}

/**
 * Made anew each time that this process begins to serve. What it gives to a network, and what it writes that would do harm when
 * it came late, it does under the gateway's lease (packages/chat/src/lease).
 */
export interface Transport {
  readonly kind: TransportKind;
  /** Whether its sessions have an {@link OtherSide}. */
  readonly hasOtherSide: boolean;
  /** What has to be installed before instances can be made, and how; undefined: nothing. */
  missing?(): Promise<string | undefined>;
  /**
   * Takes up, or finds, the instance's place on the network; repeating it changes nothing. Resolves at once, while it
   * may still be connecting: reports.connectionChanged tells the rest, and is not to be awaited in here, since it waits
   * for this very session.
   */
  open(opening: Opening): Promise<Session>;
  /** Gives up the instance's place on the network for good. */
  remove(instance: Instance): Promise<void>;
  /** Starts what runs beside requests. */
  start(reports: TransportReports): Promise<void>;
  /** Ends all sessions here, and leaves everything that is kept of them: another process may serve them next. */
  close(): Promise<void>;
}

/** 501: this network has no such thing. */
export class UnsupportedOperation extends GatewayError {
  constructor(operation: string, kind: TransportKind) {
    super('unsupported', `${operation} is not supported by the ${kind} transport`);
  }
}
