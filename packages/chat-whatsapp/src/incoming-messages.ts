/** Messages that arrive, with their sound, and changes of them. */
import { join } from 'node:path';
import type { WAMessage, WAMessageKey, WAMessageUpdate } from 'baileys';
import type { Logger } from 'soundpost-base/logger';
import type { IncomingContent, IncomingMessage, TransportReports } from 'soundpost-chat/transport';
import type { Workspaces } from 'soundpost-chat/workspace';
import type { InstanceSettings } from 'soundpost-contract/gateway-instances';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { Acknowledgements } from './acknowledgements.ts';
import type { AddressBook } from './address-book.ts';
import type { Line } from './connection.ts';
import type { Groups } from './groups.ts';
import { isGroupJid, isPersonJid } from './jids.ts';
import type { KeptMessages } from './kept-messages.ts';
import { type SeenContent, seenContent, textOf } from './message-content.ts';
import { phoneJid } from './phone-jid.ts';
import { downloadVoice } from './voice-download.ts';

export interface IncomingOptions {
  readonly instanceId: string;
  readonly ownJid: () => string;
  readonly settings: () => InstanceSettings;
  readonly reports: TransportReports;
  readonly acknowledgements: Acknowledgements;
  readonly book: AddressBook;
  readonly groups: Groups;
  readonly kept: KeptMessages;
  readonly outbound: Pick<Outbound, 'service'>;
  readonly workspaces: Pick<Workspaces, 'use'>;
  readonly logger: Logger;
}

/** Shown for sound that could not be had. */
const LOST_VOICE = '[voice message]';

export class IncomingMessages {
  readonly #options: IncomingOptions;

  constructor(options: IncomingOptions) {
    this.#options = options;
  }

  async arrived(line: Line, message: WAMessage, isHistory: boolean): Promise<void> {
    const { instanceId, reports, kept, settings, workspaces } = this.#options;
    const { key } = message;
    const seen = seenContent(line.library, message.message);
    const chatJid = await phoneJid(line, key.remoteJid, key.remoteJidAlt);
    // Channels, status updates and broadcasts are nobody's chat.
    if (!key.id || seen === undefined || !chatJid || !(isPersonJid(chatJid) || isGroupJid(chatJid))) {
      return;
    }
    if (isGroupJid(chatJid) && settings().groupsIgnore) {
      return;
    }
    const report: Omit<IncomingMessage, 'content'> = {
      messageId: key.id,
      chatJid,
      isGroup: isGroupJid(chatJid),
      ...(await this.#author(line, message, chatJid)),
      fromMe: key.fromMe ?? false,
      isHistory,
      timestampSeconds: Number(message.messageTimestamp ?? Math.floor(Date.now() / 1000)),
      context: seen.context,
    };
    const tell = (content: IncomingContent): Promise<void> =>
      reports.messageArrived(instanceId, { ...report, content });
    if (!isHistory) {
      await kept.keep(line.library, message);
    }
    if (seen.kind === 'text') {
      await tell({ kind: 'text', text: seen.text });
    } else {
      await workspaces.use(async (folder) => tell(await this.#sound(line, seen, folder)));
    }
    if (!key.fromMe && !isHistory && settings().readMessages) {
      await line.socket.readMessages([key]);
    }
  }

  /** An update that carries a new content; any other changes nothing here. */
  async updated(line: Line, { key, update }: WAMessageUpdate): Promise<void> {
    const edited = line.library.extractMessageContent(update.message?.editedMessage?.message);
    const text = edited ? textOf(edited) : undefined;
    const chatJid = await phoneJid(line, key.remoteJid, key.remoteJidAlt);
    if (text !== undefined && key.id && chatJid !== undefined) {
      const authorJid = await this.#authorJid(line, key, chatJid);
      await this.#options.reports.messageEdited(this.#options.instanceId, {
        messageId: key.id,
        authorJid,
        text,
      });
    }
  }

  async #sound(line: Line, seen: SeenContent & { kind: 'audio' }, folder: string): Promise<IncomingContent> {
    const path = join(folder, 'voice.ogg');
    try {
      await downloadVoice(line.library, seen.audio, path, this.#options.outbound);
      return { kind: 'file', path };
    } catch (error) {
      const { logger, instanceId } = this.#options;
      logger.warn({ err: error, instanceId }, 'the sound of a message could not be fetched');
      return { kind: 'text', text: LOST_VOICE };
    }
  }

  async #author(
    line: Line,
    { key, pushName }: WAMessage,
    chatJid: string,
  ): Promise<{ authorJid: string; authorName: string }> {
    const authorJid = await this.#authorJid(line, key, chatJid);
    return { authorJid, authorName: pushName || (await this.#options.book.nameOf(authorJid)) };
  }

  async #authorJid(line: Line, key: WAMessageKey, chatJid: string): Promise<string> {
    if (key.fromMe) {
      return this.#options.ownJid();
    }
    return (isGroupJid(chatJid) && (await phoneJid(line, key.participant, key.participantAlt))) || chatJid;
  }
}
