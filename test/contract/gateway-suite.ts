/**
 * What a messaging gateway does on any network: one suite, run against every transport that can be run for real. It speaks
 * to the gateway by HTTP alone and looks at what arrives through peers, who are on the network and not in the gateway.
 */
import type { TransportKind } from '../../src/contract/gateway-instances.ts';

/** A network with people on it, and a gateway of the test's own that is connected to it. */
export interface NetworkUnderTest {
  readonly transport: TransportKind;
  /** Base address of the gateway; may change with a restart. */
  url(): string;
  /** The gateway's own key. */
  readonly apiKey: string;
  /** What `POST /instance/create` needs besides the name for an account that no instance has yet. */
  newAccount(): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Called once an instance of a new account is open: afterwards both peers are among its contacts, and it owns a
   * group in which `admin` is an admin and `member` is not.
   */
  furnish(instance: string): Promise<Furniture>;
  /** A number of the right form that nobody on the network has. */
  readonly nobody: string;
  /** Stops the gateway and starts it again on the same state. */
  restart(): Promise<void>;
  close(): Promise<void>;
  /** What the network as such has; the suite expects `not_editable` and no PLAYED where it has not. */
  readonly has: {
    readonly captions: boolean;
    readonly played: boolean;
  };
}

export interface Furniture {
  /** JID of the instance's own account. */
  readonly ownJid: string;
  readonly groupJid: string;
  readonly groupName: string;
  readonly admin: Peer;
  readonly member: Peer;
}

/** Somebody on the network, as seen and steered from outside the gateway. Lists hold everything since the beginning, oldest first. */
export interface Peer {
  /** Digits, as a caller of the gateway writes them. */
  readonly number: string;
  readonly jid: string;
  /** As the instance's address book has it. */
  readonly name: string;
  /** What came from the instance, directly and in the group. */
  messages(): Promise<readonly Received[]>;
  /** `composing`, `recording`, `paused`, `available`, `unavailable` as the instance showed them to this peer. */
  presences(): Promise<readonly string[]>;
  /** Reads everything that came from the instance, so that its messages become READ. */
  read(): Promise<void>;
  /** Starts the player of a voice message; only on networks that have PLAYED. */
  play(messageId: string): Promise<void>;
  /** Writes to the instance, or to the group. Answers whether it was taken, which a blocked person's is not. */
  say(text: string, groupJid?: string): Promise<{ delivered: boolean }>;
  /** Offers a call to the instance. */
  call(): Promise<void>;
  /** How many of its calls the instance has rejected. */
  rejectedCalls(): Promise<number>;
  /** Enters the group of an invitation. Answers whether the network let it in. */
  join(invite: { inviteUrl: string; inviteCode: string }): Promise<boolean>;
}

export interface Received {
  /** `key.id` of the send operation's answer; for an edit the id of the message that it changes. */
  readonly id: string;
  readonly kind: 'voice' | 'text' | 'edit' | 'invite';
  readonly inGroup: boolean;
  /** The text of texts, edits and invites. */
  readonly text?: string;
  readonly quotedId?: string;
  readonly mentioned: readonly string[];
  /** The sound of a voice message as the peer gets it: decrypted, if the network encrypts. */
  download?(): Promise<Buffer>;
}
