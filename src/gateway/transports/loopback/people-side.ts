/**
 * What the other side of a loopback chat does when somebody plays it in the voice inbox. For a chat with the people of
 * the network that is what they do with the instance's messages; for a chat with another instance, which has an inbox
 * of its own, it is what this instance does with the messages that it got.
 */
import type { MessageStatus } from '../../../contract/job.ts';
import type { Instance } from '../../instances.ts';
import type { LoggedMessage, MessageLog } from '../../message-log.ts';
import type { OtherSide, TransportReports } from '../../transport.ts';
import { type Directory, digitsOf, suffixes } from './directory.ts';

/** A page of the inbox shows no more. */
const RECENT_MESSAGES = 200;

export interface PeopleSideOptions {
  readonly instance: Instance;
  readonly directory: Directory;
  readonly log: MessageLog;
  readonly reports: TransportReports;
}

export class PeopleSide implements OtherSide {
  readonly #options: PeopleSideOptions;

  constructor(options: PeopleSideOptions) {
    this.#options = options;
  }

  async opened(chatJid: string): Promise<void> {
    const { log, instance } = this.#options;
    await log.markRead(instance.id, chatJid);
    for (const message of await log.messages(instance.id, chatJid, RECENT_MESSAGES)) {
      await this.#report(message, 'READ');
    }
  }

  async played(chatJid: string, messageId: string): Promise<void> {
    const { log, instance } = this.#options;
    const message = await log.find(instance.id, messageId);
    if (message !== undefined && message.key.remoteJid === chatJid) {
      await this.#report(message, 'PLAYED');
    }
  }

  async #report(message: LoggedMessage, status: MessageStatus): Promise<void> {
    const { directory, instance, reports } = this.#options;
    const { key } = message;
    if (key.fromMe) {
      const peer = await directory.member(digitsOf(key.remoteJid));
      if (!peer?.instanceId) {
        await reports.statusChanged(instance.id, key.id, status);
      }
      return;
    }
    await reports.statusChanged(instance.id, key.id, status);
    const author = await directory.member(digitsOf(message.authorJid ?? key.remoteJid));
    if (author?.instanceId && !key.remoteJid.endsWith(`@${suffixes.group}`)) {
      await reports.statusChanged(author.instanceId, key.id, status);
    }
  }
}
