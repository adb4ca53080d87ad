/** Status of sent messages: receipts (XEP-0184), markers (XEP-0333) and bounces. */

import type { Logger } from 'soundpost-base/logger';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { TransportReports } from 'soundpost-chat/transport';
import { attribute, type Element, xml } from './element.ts';
import { ns } from './namespaces.ts';
import type { Stream } from './stream.ts';

/** A marker covers all earlier messages (XEP-0333 §4.2); older ones than these are not updated. */
const COVERED_MESSAGES = 200;

export class Receipts {
  readonly #instanceId: string;
  readonly #log: MessageLog;
  readonly #reports: TransportReports;

  constructor(instanceId: string, log: MessageLog, reports: TransportReports) {
    this.#instanceId = instanceId;
    this.#log = log;
    this.#reports = reports;
  }

  /** @param chatJid the sender: a receipt counts only for messages of its own chat */
  async notice(stanza: Element, chatJid: string): Promise<void> {
    const received =
      attribute(stanza.getChild('received', ns.receipts), 'id') ??
      attribute(stanza.getChild('received', ns.chatMarkers), 'id');
    if (received !== undefined && (await this.#wasSentTo(received, chatJid))) {
      await this.#reports.statusChanged(this.#instanceId, received, 'DELIVERY_ACK');
    }
    const displayed =
      attribute(stanza.getChild('displayed', ns.chatMarkers), 'id') ??
      attribute(stanza.getChild('acknowledged', ns.chatMarkers), 'id');
    if (displayed !== undefined && (await this.#wasSentTo(displayed, chatJid))) {
      await this.#readUpTo(displayed, chatJid);
    }
  }

  /** @param stanza of type `error` */
  async noticeBounce(stanza: Element, chatJid: string): Promise<void> {
    const messageId = attribute(stanza, 'id');
    if (messageId !== undefined && (await this.#wasSentTo(messageId, chatJid))) {
      await this.#reports.statusChanged(this.#instanceId, messageId, 'ERROR');
    }
  }

  async #readUpTo(messageId: string, chatJid: string): Promise<void> {
    const messages = await this.#log.messages(this.#instanceId, chatJid, COVERED_MESSAGES);
    const last = messages.findIndex(({ key }) => key.id === messageId);
    const covered = messages.slice(0, last + 1).filter(({ key }) => key.fromMe);
    for (const id of new Set([...covered.map(({ key }) => key.id), messageId])) {
      await this.#reports.statusChanged(this.#instanceId, id, 'READ');
    }
  }

  async #wasSentTo(messageId: string, chatJid: string): Promise<boolean> {
    const logged = await this.#log.find(this.#instanceId, messageId);
    return logged?.key.fromMe === true && logged.key.remoteJid === chatJid;
  }
}

// Receipts and, with `readMessages`, read markers for incoming messages.

interface AnswersOptions {
  readonly stream: Stream;
  /** The current value of the setting `readMessages`. */
  readonly marksRead: () => boolean;
  readonly logger: Logger;
}

/** Beyond this, all are forgotten; duplicates come only right after a resumption. */
const MAX_REMEMBERED = 10_000;

export class Answers {
  readonly #options: AnswersOptions;
  readonly #answered = new Set<string>();

  constructor(options: AnswersOptions) {
    this.#options = options;
  }

  async toPerson(stanza: Element, messageId: string, from: string): Promise<void> {
    if (this.#answered.has(messageId)) {
      return;
    }
    if (this.#answered.size >= MAX_REMEMBERED) {
      this.#answered.clear();
    }
    this.#answered.add(messageId);
    if (stanza.getChild('request', ns.receipts) !== undefined) {
      await this.#send(from, 'chat', xml('received', { xmlns: ns.receipts, id: messageId }));
    }
    if (this.#shallMark(stanza)) {
      await this.#send(from, 'chat', xml('displayed', { xmlns: ns.chatMarkers, id: messageId }));
    }
  }

  /** @param roomId the message's id in the room, which all occupants know */
  async toRoom(stanza: Element, roomId: string, room: string): Promise<void> {
    if (this.#shallMark(stanza)) {
      await this.#send(room, 'groupchat', xml('displayed', { xmlns: ns.chatMarkers, id: roomId }));
    }
  }

  #shallMark(stanza: Element): boolean {
    return this.#options.marksRead() && stanza.getChild('markable', ns.chatMarkers) !== undefined;
  }

  async #send(to: string, type: 'chat' | 'groupchat', answer: Element): Promise<void> {
    const { stream, logger } = this.#options;
    await stream
      .send(xml('message', { type, to }, answer, xml('store', { xmlns: ns.hints })))
      .catch((error: unknown) => logger.debug({ err: error }, 'a receipt was not sent'));
  }
}
