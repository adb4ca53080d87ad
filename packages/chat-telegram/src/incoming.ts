/** Turns the Bot API's updates into the gateway's reports. */
import { copyFile, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'soundpost-base/logger';
import type { ChatBook } from 'soundpost-chat/chat-book';
import type { MessageLog } from 'soundpost-chat/message-log';
import {
  fetchedAs,
  type IncomingContent,
  type IncomingVideo,
  incomingVideo,
  type MessageContext,
  type TransportReports,
} from 'soundpost-chat/transport';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { type BotApi, NoAnswer, Refused } from './api.ts';
import { chatName, File, type MemberUpdate, type Message, personName, type Update } from './api-types.ts';
import { isGroupId, jidOf, networkIdOf } from './chat-id.ts';

interface IncomingOptions {
  readonly instanceId: string;
  readonly api: BotApi;
  readonly book: ChatBook;
  readonly log: Pick<MessageLog, 'idOf'>;
  readonly reports: TransportReports;
  readonly workspaces: Pick<Workspaces, 'use'>;
  readonly logger: Logger;
  /** Called when a group became a supergroup. */
  readonly moved: (from: number, to: number) => Promise<void>;
}

/** A file that does not come is tried this often, 2 s apart. */
const FETCH_ATTEMPTS = 3;
const FETCH_AGAIN_MS = 2_000;

export class Incoming {
  readonly #options: IncomingOptions;

  constructor(options: IncomingOptions) {
    this.#options = options;
  }

  /** Resolves once all that it says is stored. Repeating it changes nothing. */
  async handle(update: Update, signal: AbortSignal): Promise<void> {
    const message = update.message ?? update.channel_post;
    const edited = update.edited_message ?? update.edited_channel_post;
    if (message !== undefined) await this.#arrived(message, signal);
    if (edited !== undefined) await this.#edited(edited);
    if (update.my_chat_member !== undefined) await this.#ownMembership(update.my_chat_member);
    if (update.chat_member !== undefined) await this.#promotion(update.chat_member);
  }

  async #arrived(message: Message, signal: AbortSignal): Promise<void> {
    const { book, moved } = this.#options;
    const { chat, migrate_to_chat_id: to, migrate_from_chat_id: from } = message;
    if (to !== undefined) return moved(chat.id, to);
    await book.learn(jidOf(chat.id), { name: chatName(chat), isGroup: isGroupId(chat.id) });
    if (from !== undefined) return moved(from, chat.id);
    if (message.from !== undefined && isGroupId(chat.id)) {
      await book.learn(jidOf(message.from.id), { name: personName(message.from), isGroup: false });
    }
    await this.#members(message);
    const media = mediaOf(message);
    if (media === undefined) {
      const text = message.text ?? message.caption;
      if (text !== undefined) await this.#report(message, { kind: 'text', text });
      return;
    }
    await this.#options.workspaces.use('telegram', async (workspace) => {
      const content = await this.#fetch(media, join(workspace, 'received'), signal);
      await this.#report(message, content);
      const hasCaption = content.kind === 'file' && content.video !== undefined;
      if (message.caption !== undefined && !hasCaption) await this.#edited(message);
    });
  }

  async #report(message: Message, content: IncomingContent): Promise<void> {
    const { reports, instanceId } = this.#options;
    const { jid, name } = authorOf(message);
    await reports.messageArrived(instanceId, {
      messageId: networkIdOf(message.chat.id, message.message_id),
      chatJid: jidOf(message.chat.id),
      isGroup: isGroupId(message.chat.id),
      authorJid: jid,
      authorName: name,
      timestampSeconds: message.date,
      content,
      context: await this.#context(message),
    });
  }

  /** Also gives a voice note its caption, which the gateway keeps as a text of its own. */
  async #edited(message: Message): Promise<void> {
    const { reports, instanceId } = this.#options;
    const text = message.text ?? message.caption;
    if (text === undefined) return;
    const messageId = networkIdOf(message.chat.id, message.message_id);
    await reports.messageEdited(instanceId, { messageId, authorJid: authorOf(message).jid, text });
  }

  async #context({ chat, reply_to_message: quoted, ...message }: Message): Promise<MessageContext> {
    const { log, instanceId } = this.#options;
    const quotedId = quoted && networkIdOf(quoted.chat.id, quoted.message_id);
    const entities = [...(message.entities ?? []), ...(message.caption_entities ?? [])];
    return {
      quoted:
        quotedId && quoted
          ? {
              // An own message is known by the id that its sender was answered.
              id: (await log.idOf(instanceId, quotedId)) ?? quotedId,
              text: quoted.text ?? quoted.caption,
            }
          : undefined,
      mentioned: entities.flatMap(({ user }) => (user === undefined ? [] : [jidOf(user.id)])),
      mentionsEveryOne: false,
      linkPreview: false,
    };
  }

  /** Always something to report: a file that cannot be had becomes a sentence. */
  async #fetch(media: Media, path: string, signal: AbortSignal): Promise<IncomingContent> {
    const { api, logger, instanceId } = this.#options;
    if ((media.file_size ?? 0) > api.maxDownloadBytes) {
      return tooLarge(media, api.isPublic ? TELEGRAM_HANDS_OUT : GATEWAY_TAKES);
    }
    try {
      await this.#take(media.file_id, path, signal);
      return { kind: 'file', path, video: media.video };
    } catch (error) {
      signal.throwIfAborted();
      const known = error instanceof Refused || error instanceof NoAnswer;
      // Another error may name a path, which on a local server has the token in it.
      const reason = known ? error.message : 'the file cannot be read';
      logger.warn({ instanceId, reason }, 'a file that somebody sent could not be fetched');
      if (reason === GATEWAY_TAKES) return tooLarge(media, reason);
      return /too big/i.test(reason) ? tooLarge(media, TELEGRAM_HANDS_OUT) : missing(media);
    }
  }

  async #take(fileId: string, path: string, signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#takeOnce(fileId, path, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof NoAnswer) || attempt === FETCH_ATTEMPTS) throw error;
        await wait(FETCH_AGAIN_MS, undefined, { signal });
      }
    }
  }

  async #takeOnce(fileId: string, path: string, signal: AbortSignal): Promise<void> {
    const { api } = this.#options;
    const { file_path: found } = await api.call('getFile', { file_id: fileId }, File, { signal });
    if (found !== undefined && !isAbsolute(found)) return api.download(found, path, signal);
    // A local server in the mode --local answers a path on this machine.
    const file = found === undefined || api.isPublic ? undefined : await stat(found);
    if (found === undefined || !file?.isFile()) throw new Error('no file');
    if (file.size > api.maxDownloadBytes) throw new Refused(413, GATEWAY_TAKES);
    await copyFile(found, path);
  }

  /** Others come and go. What the bot itself does comes as `my_chat_member`. */
  async #members({
    chat,
    from,
    new_chat_members: added = [],
    left_chat_member: left,
  }: Message): Promise<void> {
    const { api, reports, instanceId } = this.#options;
    for (const [action, users] of [
      ['add', added],
      ['remove', left ? [left] : []],
    ] as const) {
      const participants = users.filter(({ id }) => id !== api.ownId).map(({ id }) => jidOf(id));
      if (participants.length > 0) {
        await reports.participantsChanged(instanceId, {
          ...{ groupJid: jidOf(chat.id), action, participants },
          ...(from === undefined ? {} : { authorJid: jidOf(from.id) }),
        });
      }
    }
  }

  async #ownMembership(update: MemberUpdate): Promise<void> {
    const { book, reports, instanceId, api } = this.#options;
    const { chat, from } = update;
    const [was, is] = [isIn(update.old_chat_member), isIn(update.new_chat_member)];
    // In a private chat this says that the person blocked the bot, which then cannot write to them.
    if (is) await book.learn(jidOf(chat.id), { name: chatName(chat), isGroup: isGroupId(chat.id) });
    else await book.forget(jidOf(chat.id));
    if (was === is || chat.type === 'private') return this.#promotion(update);
    await reports.participantsChanged(instanceId, {
      groupJid: jidOf(chat.id),
      action: is ? 'add' : 'remove',
      participants: [jidOf(api.ownId)],
      authorJid: jidOf(from.id),
    });
  }

  async #promotion({ chat, from, old_chat_member: old, new_chat_member: now }: MemberUpdate): Promise<void> {
    const [was, is] = [isAdmin(old), isAdmin(now)];
    if (was === is || !isIn(old) || !isIn(now)) return;
    await this.#options.reports.participantsChanged(this.#options.instanceId, {
      groupJid: jidOf(chat.id),
      action: is ? 'promote' : 'demote',
      participants: [jidOf(now.user.id)],
      authorJid: jidOf(from.id),
    });
  }
}

type Media = NonNullable<Message['voice']> & { readonly video?: IncomingVideo };

/**
 * What is fetched. A video note counts as something said; a document is what it says that it is.
 */
function mediaOf({ caption, document, ...message }: Message): Media | undefined {
  const heard = message.voice ?? message.audio ?? message.video_note;
  if (heard !== undefined) return heard;
  const kind = fetchedAs(document?.mime_type);
  if (kind === 'audio') return document;
  const seen = message.video ?? (kind === 'video' ? document : undefined);
  return seen && { ...seen, video: incomingVideo(seen.mime_type, caption) };
}

const nameOf = ({ video }: Media): string => (video === undefined ? 'A recording' : 'A video');

const megabytes = (bytes: number): number => Math.ceil(bytes / 1_000_000);

const TELEGRAM_HANDS_OUT = 'Telegram hands out 20 MB at most. A local Bot API server has no such limit.';
const GATEWAY_TAKES = 'the gateway takes 100 MiB at most.';

const tooLarge = (media: Media, why: string): IncomingContent => ({
  kind: 'text',
  text: `[${nameOf(media)}${media.file_size === undefined ? '' : ` of ${megabytes(media.file_size)} MB`}: ${why}]`,
});

const missing = (media: Media): IncomingContent => ({
  kind: 'text',
  text: `[${nameOf(media)} that Telegram did not hand out.]`,
});

/** A channel, or an administrator who writes in the name of the group, is an author too. */
function authorOf({ from, sender_chat: sender, chat }: Message): { jid: string; name: string } {
  if (sender === undefined && from !== undefined) return { jid: jidOf(from.id), name: personName(from) };
  const named = sender ?? chat;
  return { jid: jidOf(named.id), name: chatName(named) };
}

type Member = MemberUpdate['new_chat_member'];

/** core.telegram.org/bots/api#chatmember */
const isAdmin = ({ status }: Member): boolean => status === 'creator' || status === 'administrator';
const isIn = (member: Member): boolean =>
  isAdmin(member) ||
  member.status === 'member' ||
  (member.status === 'restricted' && member.is_member === true);
