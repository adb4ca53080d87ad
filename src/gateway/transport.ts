/**
 * What a chat network has to do for the gateway. The gateway prepares and stores the media, keeps the log of
 * messages, answers callers and posts events; a transport only finds people, sends, and reports what happens.
 *
 * What not every network can do is an optional member: where it is absent the operation answers 501 `unsupported`,
 * so that nothing can pretend to have succeeded.
 */
import type { AudioMessage } from '../contract/gateway.ts';
import { GatewayError } from '../contract/gateway-errors.ts';
import type { ConnectionState, InstanceSettings, TransportKind } from '../contract/gateway-instances.ts';
import type { MessageKey, MessageStatus } from '../contract/job.ts';
import type { Address } from './address.ts';
import type { Instance } from './instances.ts';

/** Somebody, or a group, that the instance can write to. */
export interface Chat {
  readonly jid: string;
  readonly name: string;
  readonly isGroup: boolean;
}

export interface Participant {
  readonly jid: string;
  readonly name: string;
  readonly admin: 'superadmin' | 'admin' | null;
}

export interface Contact extends Chat {
  readonly isSaved: boolean;
  readonly blocked: boolean;
}

interface PrivacySettings {
  readonly readreceipts: string;
  readonly profile: string;
  readonly status: string;
  readonly online: string;
  readonly last: string;
  readonly groupadd: string;
}

export interface MessageContext {
  /** The message that this one answers; its text as the caller gave it, for networks that carry the quotation. */
  readonly quoted: { readonly id: string; readonly text: string | undefined } | undefined;
  readonly mentioned: readonly string[];
  readonly mentionsEveryOne: boolean;
  readonly linkPreview: boolean;
}

export interface OutgoingVoice {
  /**
   * Chosen by the gateway, and the same when a send is repeated after a crash: a network that already took a
   * message with this id takes it as that message.
   */
  readonly messageId: string;
  readonly chat: Chat;
  /** A finished Ogg Opus voice note on the local disk, for networks that take the file itself. */
  readonly file: string;
  readonly content: AudioMessage;
  readonly context: MessageContext;
}

export type Presence = 'composing' | 'recording' | 'paused' | 'available' | 'unavailable';

/** An instance on its network. Every method rejects with a GatewayError that names what the caller can do. */
export interface Session {
  /** JID of the instance's own account. */
  readonly ownJid: string;
  state(): ConnectionState;
  /** Finds who is meant in the instance's network. Throws unknown_recipient. @param field named in the error. */
  resolve(address: Address, field: string): Promise<Chat>;
  /** Resolves when the network took the message. Sending the same messageId again changes nothing. */
  sendVoice(message: OutgoingVoice, signal: AbortSignal): Promise<void>;
  showPresence(chat: Chat, presence: Presence): Promise<void>;
  /** Everybody in the address book and every group. */
  contacts(): Promise<Contact[]>;
  participants?(group: Address): Promise<Participant[]>;
  editMessage?(chat: Chat, key: MessageKey, text: string): Promise<void>;
  sendInvite?(group: Address, description: string, to: readonly Chat[]): Promise<{ inviteUrl: string }>;
  inviteCode?(group: Address): Promise<{ inviteUrl: string; inviteCode: string }>;
  setBlocked?(chat: Chat, blocked: boolean): Promise<void>;
  privacySettings?(): Promise<PrivacySettings>;
  applySettings?(settings: InstanceSettings): Promise<void>;
  /** The other side of the chats, where the gateway plays it too; the inbox is read-only without it. */
  readonly otherSide?: OtherSide;
}

export interface OtherSide {
  /** Whoever is on the other side of this chat looked at it. */
  opened(chatJid: string): Promise<void>;
  /** Whoever is on the other side of this chat started the player. */
  played(chatJid: string, messageId: string): Promise<void>;
}

/** How a network tells what happened. Each call may come late, twice or out of order. */
export interface TransportReports {
  statusChanged(instanceId: string, messageId: string, status: MessageStatus): Promise<void>;
  messageArrived(instanceId: string, message: IncomingVoice): Promise<void>;
  presenceChanged(instanceId: string, chatJid: string, presence: Presence): Promise<void>;
}

export interface IncomingVoice {
  readonly messageId: string;
  readonly chatJid: string;
  readonly authorJid: string;
  readonly authorName: string;
  readonly timestampSeconds: number;
  readonly content: AudioMessage;
  readonly context: MessageContext;
}

export interface Transport {
  readonly kind: TransportKind;
  /** Takes up, or finds, the instance's place on the network; repeating it changes nothing. */
  open(instance: Instance): Promise<Session>;
  /** Gives up the instance's place on the network for good. */
  remove(instance: Instance): Promise<void>;
  /** Starts what runs beside requests. */
  start(reports: TransportReports): Promise<void>;
  close(): Promise<void>;
}

/** 501: this network has no such thing. */
export class UnsupportedOperation extends GatewayError {
  constructor(operation: string, kind: TransportKind) {
    super('unsupported', `${operation} is not supported by the ${kind} transport`);
  }
}
