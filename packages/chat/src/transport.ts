/**
 * What a chat network implements for the gateway. The gateway prepares and stores media, logs
 * messages, orders and limits sending, answers callers and posts events. A transport finds people,
 * sends, and reports events.
 *
 * Operations that not every network has are optional members. Without one, the gateway answers 501
 * `unsupported`, so that nothing seems to have succeeded.
 */
import type { AudioMessage, MessageContent, VideoMessage } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type {
  Connection,
  ConnectionState,
  InstanceSettings,
  TransportKind,
} from 'soundpost-contract/gateway-instances';
import type { PrivacySettings } from 'soundpost-contract/gateway-operations';
import type { MessageKey, MessageStatus } from 'soundpost-contract/job';
import type { Address } from './address.ts';
import type { Instance } from './instances.ts';

/** A person or group that the instance can write to. */
export interface Chat {
  readonly jid: string;
  readonly name: string;
  readonly isGroup: boolean;
}

/** A chat known to the network itself, besides those in the gateway's log. */
export interface NetworkChat extends Chat {
  /** Time of the last message, ms since 1970; null if unknown. */
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
  /** The quoted message; its text as the caller wrote it, for networks that send it along. */
  readonly quoted:
    | {
        readonly id: string;
        readonly text: string | undefined;
        /** Of whoever wrote the quoted message, where the network says it. */
        readonly authorJid?: string | undefined;
      }
    | undefined;
  readonly mentioned: readonly string[];
  readonly mentionsEveryOne: boolean;
  readonly linkPreview: boolean;
}

interface Outgoing {
  /**
   * Chosen by the gateway, and repeated when a send is retried after a crash: a network that has
   * accepted this id treats the message as the same one.
   */
  readonly messageId: string;
  readonly chat: Chat;
}

export interface OutgoingVoice extends Outgoing {
  /** A finished Ogg Opus voice note on the local disk. */
  readonly file: string;
  /** Measured length. */
  readonly durationMs: number;
  readonly content: AudioMessage;
  readonly context: MessageContext;
}

export interface OutgoingText extends Outgoing {
  readonly text: string;
  /** Default: no reply, no mentions. */
  readonly context?: MessageContext;
}

/** An invitation of one person to a group of the instance. */
export interface OutgoingInvite extends Outgoing {
  readonly group: Address;
  /** As returned by {@link Session.inviteCode} for this group. */
  readonly inviteUrl: string;
  readonly inviteCode: string;
  readonly description: string;
  /** Readable text: description and address. */
  readonly text: string;
}

/** An edit. The gateway has checked that the message exists, is own, and is in this chat. */
export interface MessageEdit {
  readonly chat: Chat;
  readonly key: MessageKey;
  /** New text of a text message, or caption of a voice message. */
  readonly text: string;
  readonly kind: 'text' | 'voice';
}

export type Presence = 'composing' | 'recording' | 'paused' | 'available' | 'unavailable';

/** What a person needs to pair the instance with an account (`GET /instance/connect`). */
export interface Pairing {
  /** To type on the phone; null if only the picture works. */
  readonly pairingCode: string | null;
  /** The content of the picture. */
  readonly code: string;
  /** The picture as `data:image/png;base64,…`. */
  readonly base64: string;
  /** Pairings made since connecting began. */
  readonly count: number;
}

/** An instance on its network. Methods reject with a GatewayError that says what to do. */
export interface Session {
  /** JID of the instance's own account; empty while unknown. */
  readonly ownJid: string;
  /**
   * The network takes no id of ours, so a repeated send would arrive twice. The gateway marks each
   * send as handed over first, and never hands over a marked one. `sendVoice`, `sendText` and
   * `sendInvite` then throw GatewayError only if the network surely did not take the message
   * (except `timeout`: unknown), and report the id that it gave by `statusChanged`.
   */
  readonly knowsNoIds?: true;
  /** Fields of a send that the network cannot honour: asked for, they answer 501. Default: none. */
  readonly lacks?: readonly ('mentioned' | 'mentionsEveryOne')[];
  /** What others see as the account's name, where that is known. */
  readonly ownName?: string | undefined;
  state(): ConnectionState;
  /**
   * Connects after a logout or a lost connection; does nothing while open or connecting.
   * @param pairingNumber digits of the phone for a pairing code, on networks that use one
   */
  connect(pairingNumber?: string): Promise<void>;
  /** Leaves the network. The gateway stores this, so a restart does not connect again. */
  logout(): Promise<void>;
  /** The current pairing data; undefined if none is needed. */
  pairing?(): Pairing | undefined;
  /** Finds the recipient. Throws unknown_recipient. @param field named in the error. */
  resolve(address: Address, field: string): Promise<Chat>;
  /**
   * All JIDs of the person with this one, the one under which they are listed first, on networks
   * where somebody has several. Default: this one alone.
   */
  addressesOf?(jid: string): Promise<readonly string[]>;
  /** Resolves when the network accepted the message. Repeating a messageId changes nothing. */
  sendVoice(message: OutgoingVoice, signal: AbortSignal): Promise<void>;
  sendText?(message: OutgoingText, signal: AbortSignal): Promise<void>;
  showPresence(chat: Chat, presence: Presence): Promise<void>;
  /** All contacts and all groups. */
  contacts(): Promise<Contact[]>;
  /** Chats in the network's archive; the gateway adds those of its own log. */
  chats?(): Promise<NetworkChat[]>;
  /** Throws group_not_found. */
  participants?(group: Address): Promise<Participant[]>;
  /** Throws not_editable if the network cannot edit this kind of message. */
  editMessage?(edit: MessageEdit): Promise<void>;
  /** Invites one person, who can enter with the invitation alone. */
  sendInvite?(invite: OutgoingInvite, signal: AbortSignal): Promise<void>;
  /** The code that lets anyone in. Throws group_not_found. */
  inviteCode?(group: Address): Promise<{ inviteUrl: string; inviteCode: string }>;
  /** Invalidates the code and returns a new one. Throws group_not_found. */
  revokeInvite?(group: Address): Promise<{ inviteUrl: string; inviteCode: string }>;
  /** Enters the code's group. Throws group_not_found. */
  acceptInvite?(inviteCode: string): Promise<{ groupJid: string }>;
  /** The chat is always a person's. */
  setBlocked?(chat: Chat, blocked: boolean): Promise<void>;
  /** Values of {@link PrivacySettings}; the gateway rejects any other. */
  privacySettings?(): Promise<Readonly<Record<keyof PrivacySettings, string>>>;
  /**
   * The instance's settings changed. The gateway itself handles groupsIgnore, readStatus and the
   * text after a rejected call.
   */
  applySettings?(settings: InstanceSettings): Promise<void>;
  /** Called for every offered call while `rejectCall` is set. */
  rejectCall?(call: IncomingCall): Promise<void>;
  /** Plays the other side of the chats; without it the inbox is read-only. */
  readonly otherSide?: OtherSide;
}

/** A person played by the gateway. */
export interface Persona {
  readonly jid: string;
  readonly name: string;
  /** Whether this person has blocked the instance. */
  readonly hasBlocked: boolean;
}

export interface OtherSide {
  /** The other side of this chat opened it. */
  opened(chatJid: string): Promise<void>;
  /** The other side of this chat played the message. */
  played(chatJid: string, messageId: string): Promise<void>;
  /** People to play in this chat; none if the other side is an instance with its own inbox. */
  people(chatJid: string): Promise<Persona[]>;
  /** Sends to the instance, or to a shared group. Messages of a blocked person bounce. */
  reply(chatJid: string, personJid: string, content: MessageContent): Promise<{ delivered: boolean }>;
  typing(chatJid: string, personJid: string, presence: Presence): Promise<void>;
  /** Rings until the instance rejects it or the person hangs up. */
  call(personJid: string): Promise<{ callId: string }>;
  hangUp(callId: string): Promise<void>;
  setBlocked(personJid: string, blocked: boolean): Promise<void>;
}

/** What a network says with a status. */
export interface StatusDetails {
  /** Its own id of the message; {@link MessageLog.find} answers it. */
  readonly networkId?: string | undefined;
  /** Why the message became ERROR: the network's code, and a sentence with the remedy. */
  readonly error?: { readonly code: string; readonly message: string } | undefined;
}

/** A request of a network's server to `/webhooks/<kind>/<instance>`; it has no API key. */
export interface WebhookCall {
  readonly method: 'GET' | 'POST';
  readonly query: URLSearchParams;
  /** @param name in lower case */
  readonly header: (name: string) => string | undefined;
  /**
   * Reads it as it came, for its signature; UTF-8. Undefined if that fails. Call it only once
   * nothing else speaks against the request: a stranger's body is not read.
   */
  readonly body: () => Promise<string | undefined>;
}

/** A network's reports. Each call may come late, twice or out of order. */
export interface TransportReports {
  /** @param messageId ours, or the network's own if it was reported before */
  statusChanged(
    instanceId: string,
    messageId: string,
    status: MessageStatus,
    details?: StatusDetails,
  ): Promise<void>;
  messageArrived(instanceId: string, message: IncomingMessage): Promise<void>;
  /** Someone edited their own message. */
  messageEdited(instanceId: string, edit: IncomingEdit): Promise<void>;
  /** @param whoseJid default: the instance itself */
  presenceChanged(instanceId: string, chatJid: string, presence: Presence, whoseJid?: string): Promise<void>;
  /** @param statusReason the network's code for the end of a connection; default 428, closed */
  connectionChanged(
    instanceId: string,
    state: ConnectionState,
    reason?: string,
    statusReason?: number,
  ): Promise<void>;
  /**
   * There is a new code to pair the instance with; undefined: nobody used them, and none follows.
   */
  pairingChanged?(instanceId: string, pairing: Pairing | undefined): Promise<void>;
  callChanged(instanceId: string, call: IncomingCall): Promise<void>;
  participantsChanged(instanceId: string, change: ParticipantsChange): Promise<void>;
}

export type IncomingContent =
  | { readonly kind: 'text'; readonly text: string }
  /** Its media the gateway has stored already. */
  | { readonly kind: 'kept'; readonly message: MessageContent }
  /** A file on the local disk, which the transport removes after the report. */
  | { readonly kind: 'file'; readonly path: string; readonly video?: IncomingVideo | undefined }
  /** A file at an untrusted address; if it cannot be had, the text is `fallback`. */
  | {
      readonly kind: 'url';
      readonly url: string;
      readonly fallback: string;
      readonly video?: IncomingVideo | undefined;
    };

/** That a file is a video, kept as it is. Without this it is audio, and becomes a voice note. */
export type IncomingVideo = Pick<VideoMessage, 'mimetype' | 'caption'>;

/**
 * As what a file is fetched; undefined: only its text is told.
 * @param mimetype as its sender said; default: none
 */
export function fetchedAs(mimetype: string | null | undefined): 'audio' | 'video' | undefined {
  return FETCHED.find((kind) => mimetype?.startsWith(`${kind}/`));
}

const FETCHED = ['audio', 'video'] as const;
const MEDIA_TYPE = /^video\/[\w.+-]{1,64}$/;

/**
 * @param mimetype as its sender said: a stranger's, so that parameters and other words are dropped
 */
export function incomingVideo(
  mimetype: string | null | undefined,
  caption: string | null | undefined,
): IncomingVideo {
  const plain = mimetype?.split(';')[0]?.trim() ?? '';
  return {
    mimetype: MEDIA_TYPE.test(plain) ? plain : 'video/mp4',
    ...(caption ? { caption } : {}),
  };
}

export interface IncomingMessage {
  readonly messageId: string;
  readonly chatJid: string;
  readonly isGroup: boolean;
  readonly authorJid: string;
  readonly authorName: string;
  /** Sent with the instance's account from another device. Default false. */
  readonly fromMe?: boolean;
  /** From the archive: neither unread nor reported. Default false. */
  readonly isHistory?: boolean;
  readonly timestampSeconds: number;
  readonly content: IncomingContent;
  readonly context: MessageContext;
}

export interface IncomingEdit {
  /** Id of the edited message. */
  readonly messageId: string;
  readonly authorJid: string;
  /** The new text, or caption of a voice message. */
  readonly text: string;
}

export interface IncomingCall {
  readonly callId: string;
  readonly fromJid: string;
  /** Default: the caller's own chat. */
  readonly chatJid?: string;
  /** Default false. */
  readonly isGroup?: boolean;
  /** Whether it rang while the instance was not connected. Default false. */
  readonly isOffline?: boolean;
  readonly isVideo: boolean;
  readonly timestampSeconds: number;
  readonly status: 'offer' | 'reject' | 'timeout' | 'terminate' | 'accept';
}

export interface ParticipantsChange {
  readonly groupJid: string;
  readonly action: 'add' | 'remove' | 'promote' | 'demote';
  readonly participants: readonly string[];
  /** Who made the change, if known. */
  readonly authorJid?: string;
}

interface Opening {
  readonly instance: Instance;
  readonly connection: Connection | undefined;
  /** Whether to connect now; false for an instance that was logged out. */
  readonly connect: boolean;
}

/**
 * Built anew each time this process begins to serve. It sends to a network, and writes what would
 * do harm late, only under the gateway's lease (packages/chat/src/lease).
 */
export interface Transport {
  readonly kind: TransportKind;
  /** Whether its sessions have an {@link OtherSide}. */
  readonly hasOtherSide: boolean;
  /** What to install before instances can be created, and how; undefined: nothing. */
  missing?(): Promise<string | undefined>;
  /**
   * Opens or finds the instance's session; repeating it changes nothing. Resolves at once, perhaps
   * while connecting: reports.connectionChanged follows. Do not await that report in here, since it
   * waits for this session.
   */
  open(opening: Opening): Promise<Session>;
  /**
   * Answers a request of the network's server. A forged or unreadable one gets 403, as one to an
   * instance that is not open.
   * @returns status, and the body as plain text
   */
  webhook?(instance: Instance, call: WebhookCall): Promise<{ status: number; text?: string }>;
  /** Ends the instance's session for good. */
  remove(instance: Instance): Promise<void>;
  /** Starts background work. */
  start(reports: TransportReports): Promise<void>;
  /** Ends all sessions here but keeps their data: another process may serve them next. */
  close(): Promise<void>;
}

/**
 * Runs what comes before a send to a network that knows no id of ours: whatever fails there,
 * nothing was sent, so the message can be sent again.
 * @throws GatewayError: other errors become `not_connected`
 */
export async function beforeSend<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    throw new GatewayError('not_connected', 'the gateway could not prepare the message; nothing was sent', {
      retryAfterSeconds: 5,
      cause,
    });
  }
}

/** 501: this network lacks the operation. */
export class UnsupportedOperation extends GatewayError {
  constructor(operation: string, kind: TransportKind) {
    super('unsupported', `${operation} is not supported by the ${kind} transport`);
  }
}
