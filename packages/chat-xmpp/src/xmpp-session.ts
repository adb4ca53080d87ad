/** The gateway's operations on an XMPP account; docs/xmpp.md has the table. */
import { randomUUID } from 'node:crypto';
import type { Address } from 'soundpost-chat/address';
import type {
  Chat,
  Contact,
  IncomingCall,
  MessageEdit,
  NetworkChat,
  OutgoingInvite,
  OutgoingText,
  OutgoingVoice,
  Participant,
  Presence,
  Session,
} from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { ConnectionState, InstanceSettings } from 'soundpost-contract/gateway-instances';
import type { PrivacySettings } from 'soundpost-contract/gateway-operations';
import type { Account } from './account.ts';
import { listChats, listContacts, resolveChat } from './directory.ts';
import { type Element, xml } from './element.ts';
import { refusal } from './failure.ts';
import type { Groups } from './groups.ts';
import { ns } from './namespaces.ts';
import { privacySettings } from './privacy.ts';
import { upload } from './upload.ts';
import { contextElements, mentionsOf, quotationOf, voiceStanza } from './voice-stanza.ts';

const VOICE_NAME = 'voice.ogg';

export class XmppSession implements Session {
  readonly #account: Account;

  constructor(account: Account) {
    this.#account = account;
  }

  get ownJid(): string {
    return this.#account.ownJid;
  }

  state(): ConnectionState {
    return this.#account.stream.state;
  }

  async connect(): Promise<void> {
    this.#account.stream.start();
  }

  async logout(): Promise<void> {
    await this.#account.stream.stop();
  }

  resolve(address: Address, field: string): Promise<Chat> {
    return resolveChat(this.#account, address, field);
  }

  async sendVoice(
    { messageId, chat, file, durationMs, content, context }: OutgoingVoice,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#send(
      chat,
      messageId,
      async () => {
        const [quoted, mentions, shared] = await Promise.all([
          quotationOf(this.#account, chat, context),
          mentionsOf(this.#account, chat, context),
          upload(this.#account, { file, name: VOICE_NAME, mediaType: content.mimetype, signal }),
        ]);
        return voiceStanza({
          messageId,
          to: chat.jid,
          isGroup: chat.isGroup,
          shared,
          fileName: VOICE_NAME,
          content,
          durationMs,
          quoted,
          mentions,
        });
      },
      signal,
    );
  }

  async sendText({ messageId, chat, text, context }: OutgoingText, signal: AbortSignal): Promise<void> {
    await this.#send(
      chat,
      messageId,
      async () => {
        const stanza = textStanza(chat, messageId, text);
        if (context !== undefined) {
          const [quoted, mentions] = await Promise.all([
            quotationOf(this.#account, chat, context),
            mentionsOf(this.#account, chat, context),
          ]);
          stanza.append(...contextElements(quoted, mentions));
        }
        return stanza;
      },
      signal,
    );
  }

  async sendInvite(invite: OutgoingInvite, signal: AbortSignal): Promise<void> {
    const { messageId, chat, group, inviteCode, description, text } = invite;
    const room = (await this.#account.groups.require(group)).jid;
    await this.#send(
      chat,
      messageId,
      async () => {
        await this.#account.rooms.makeMember(room, chat.jid);
        const invitation = xml('x', {
          xmlns: ns.conference,
          jid: room,
          password: inviteCode,
          ...(description === '' ? {} : { reason: description }),
        });
        const stanza = textStanza(chat, messageId, text);
        stanza.append(invitation);
        return stanza;
      },
      signal,
    );
  }

  async editMessage({ chat, key, text, kind }: MessageEdit): Promise<void> {
    if (kind === 'voice') {
      throw new GatewayError(
        'not_editable',
        'key: on XMPP a change replaces the whole message, so a voice message would be lost by it',
      );
    }
    if (chat.isGroup) {
      await this.#account.groups.enter(chat.jid);
    }
    // XEP-0308: replaces the first version by its id; the edit has a new id of its own.
    const stanza = textStanza(chat, randomUUID(), text);
    stanza.append(xml('replace', { xmlns: ns.correction, id: key.id }));
    await this.#asked('key', this.#account.stream.send(stanza));
  }

  async showPresence(chat: Chat, presence: Presence): Promise<void> {
    const { stream, reports, instanceId, groups } = this.#account;
    const room = chat.isGroup ? await groups.enter(chat.jid) : undefined;
    await this.#asked('number', stream.send(presenceStanza(chat, presence, room?.nick)));
    await reports.presenceChanged(instanceId, chat.jid, presence);
  }

  contacts(): Promise<Contact[]> {
    return listContacts(this.#account);
  }

  chats(): Promise<NetworkChat[]> {
    return listChats(this.#account);
  }

  async participants(address: Address): Promise<Participant[]> {
    const { groups, rooms, addressBook } = this.#account;
    const { jid } = await groups.require(address);
    // A room shows less to outsiders.
    await groups.enter(jid);
    const participants = await rooms.participants(jid);
    return participants.map((participant) => ({
      ...participant,
      name: participant.name || addressBook.knownName(participant.jid),
    }));
  }

  inviteCode(group: Address): ReturnType<Groups['invitation']> {
    return this.#account.groups.invitation(group, false);
  }

  revokeInvite(group: Address): ReturnType<Groups['invitation']> {
    return this.#account.groups.invitation(group, true);
  }

  async acceptInvite(inviteCode: string): Promise<{ groupJid: string }> {
    return { groupJid: await this.#account.groups.accept(inviteCode) };
  }

  async setBlocked(chat: Chat, blocked: boolean): Promise<void> {
    await this.#asked('status', this.#account.addressBook.setBlocked(chat.jid, blocked));
  }

  privacySettings(): Promise<PrivacySettings> {
    const { stream, addressBook, settings } = this.#account;
    return this.#asked('privacy settings', privacySettings(stream, addressBook, settings));
  }

  applySettings(settings: InstanceSettings): Promise<void> {
    return this.#account.applySettings(settings);
  }

  async rejectCall({ callId, fromJid }: IncomingCall): Promise<void> {
    const { stream, inbound } = this.#account;
    const busy = xml('reason', { xmlns: ns.jingle }, xml('busy', {}));
    const reject = xml('reject', { xmlns: ns.call, id: callId }, busy);
    const to = inbound.calls.deviceOf(callId) ?? fromJid;
    const stanza = xml(
      'message',
      { type: 'chat', to, id: randomUUID() },
      reject,
      xml('store', { xmlns: ns.hints }),
    );
    await this.#asked('call', stream.send(stanza));
  }

  async #send(
    chat: Chat,
    messageId: string,
    stanza: () => Promise<Element>,
    signal: AbortSignal,
  ): Promise<void> {
    const { groups, delivery, reports, instanceId } = this.#account;
    if (chat.isGroup) {
      await groups.enter(chat.jid);
    }
    const outcome = await delivery.deliver({ chat, messageId, stanza }, signal);
    // A room echoes an accepted message, which is reported on arrival.
    if (!chat.isGroup || outcome === 'known') {
      await reports.statusChanged(instanceId, messageId, 'SERVER_ACK');
    }
  }

  async #asked<Answer>(what: string, asking: Promise<Answer>): Promise<Answer> {
    return asking.catch((error: unknown) => {
      throw refusal(what, error);
    });
  }
}

function textStanza({ jid, isGroup }: Chat, messageId: string, text: string): Element {
  const stanza = xml(
    'message',
    { type: isGroup ? 'groupchat' : 'chat', to: jid, id: messageId },
    xml('body', {}, text),
    xml('origin-id', { xmlns: ns.stanzaId, id: messageId }),
    xml('markable', { xmlns: ns.chatMarkers }),
  );
  if (!isGroup) {
    stanza.append(xml('request', { xmlns: ns.receipts }));
  }
  return stanza;
}

/** `available` and `unavailable` go to this chat alone; to a group the latter means leaving. */
function presenceStanza({ jid, isGroup }: Chat, presence: Presence, nick: string | undefined): Element {
  switch (presence) {
    case 'available':
      return xml('presence', { to: isGroup ? `${jid}/${nick}` : jid });
    case 'unavailable':
      return isGroup
        ? xml('presence', { to: `${jid}/${nick}` }, xml('show', {}, 'away'))
        : xml('presence', { to: jid, type: 'unavailable' });
    case 'composing':
    case 'recording':
    case 'paused':
      return xml(
        'message',
        { type: isGroup ? 'groupchat' : 'chat', to: jid },
        xml(presence === 'paused' ? 'paused' : 'composing', { xmlns: ns.chatStates }),
        xml('no-store', { xmlns: ns.hints }),
      );
  }
}
