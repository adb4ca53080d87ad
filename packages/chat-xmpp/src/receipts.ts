/** How far the instance's messages have come: receipts (XEP-0184), markers (XEP-0333), and what came back. */
import type { MessageLog } from 'soundpost-chat/message-log';
import type { TransportReports } from 'soundpost-chat/transport';
import { attribute, type Element } from './element.ts';
import { ns } from './namespaces.ts';

/** A marker covers what was sent before it (XEP-0333 §4.2); further back nobody looks. */
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

  /** @param chatJid whose stanza it is: nobody tells anything about the messages of another chat */
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
