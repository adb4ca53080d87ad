/** What Meta posts about one business number: statuses, messages, groups. */
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'soundpost-base/logger';
import type { ChatBook } from 'soundpost-chat/chat-book';
import type { Instance } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { MessageLog } from 'soundpost-chat/message-log';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type {
  IncomingContent,
  IncomingMessage,
  StatusDetails,
  TransportReports,
} from 'soundpost-chat/transport';
import type { MessageStatus } from 'soundpost-contract/job';
import { awayReason } from 'soundpost-kit/observe/away';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readText, withEdition } from 'soundpost-kit/redis/record';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { z } from 'zod';
import { groupJid, hiddenJid, localOf, personJid } from './addresses.ts';
import type { Graph } from './graph.ts';
import { sentenceOf } from './refusals.ts';
import type { CloudSession } from './session.ts';
import { GroupChange, Message, Messages, mediaOf, Status, textOf } from './webhook-body.ts';

interface IncomingParts {
  readonly instance: Instance;
  readonly session: CloudSession;
  readonly graph: Graph;
  readonly book: ChatBook;
  readonly log: Pick<MessageLog, 'idOf'>;
  readonly reports: TransportReports;
  readonly redis: Redis;
  readonly workspaces: Pick<Workspaces, 'use'>;
  readonly lease: Lease;
  readonly closing: AbortSignal;
  readonly logger: Logger;
}

const words: Readonly<Record<z.output<typeof Status>['status'], MessageStatus>> = {
  sent: 'SERVER_ACK',
  delivered: 'DELIVERY_ACK',
  read: 'READ',
  played: 'PLAYED',
  failed: 'ERROR',
};

/** The form of the gateway's own ids; other programs on the number may send anything. */
const OUR_ID = /^[0-9A-F]{32}$/;
const LOST_VOICE = '[voice message that could not be fetched]';
const MAX_MEDIA_BYTES = 16 * 1024 * 1024;
const TRIES = 4;
const TRY_AGAIN_MS = 500;

const Waiting = z.object({ message: Message, name: z.string() });
const MediaAddress = z.object({ url: z.string() });

export class Incoming {
  readonly #parts: IncomingParts;
  /**
   * Messages that wait for their media: Meta wants its answer at once, and a crash must lose none.
   */
  readonly #queue: string;
  #draining = false;
  /** Something came in since the queue was last found empty. */
  #again = false;

  constructor(parts: IncomingParts) {
    this.#parts = parts;
    this.#queue = gatewayKey('whatsapp-cloud', parts.instance.id, 'messages');
  }

  /** Resolves once the change is recorded. Throws if Redis does not take it: Meta repeats it. */
  async take(field: string, value: unknown): Promise<void> {
    if (this.#parts.session.isLoggedOut) return;
    const groups = field.startsWith('group_') ? GroupChange.safeParse(value).data : undefined;
    for (const group of groups?.groups ?? []) await this.#groupChanged(group);
    const { contacts, messages, statuses } = Messages.catch(nothing).parse(field === 'messages' ? value : {});
    for (const status of this.#readable(Status, statuses)) await this.#statusChanged(status);
    const waiting = this.#readable(Message, messages).map((message) => {
      const contact = contacts.find(
        ({ wa_id: number, user_id: userId }) =>
          (number !== undefined && number === message.from) ||
          (userId !== undefined && userId === message.from_user_id),
      );
      return JSON.stringify(withEdition({ message, name: contact?.profile?.name ?? '' }));
    });
    if (waiting.length > 0) await this.#parts.redis.rpush(this.#queue, ...waiting);
    this.drain();
  }

  /** Handles what waits, in order; also what an earlier process left. */
  drain(): void {
    this.#again = true;
    if (!this.#draining) void this.#keepDraining();
  }

  /** Never rejects: after an error it goes on later. */
  async #keepDraining(): Promise<void> {
    const { closing, logger, instance } = this.#parts;
    this.#draining = true;
    while (this.#again && !closing.aborted) {
      this.#again = false;
      try {
        await this.#drain();
      } catch (error) {
        if (closing.aborted) break;
        logger.warn({ err: error, instance: instance.name }, 'messages wait');
        this.#again = true;
        await wait(TRY_AGAIN_MS, undefined, { ref: false, signal: closing }).catch(() => undefined);
      }
    }
    this.#draining = false;
  }

  async erase(): Promise<void> {
    await this.#parts.redis.unlink(this.#queue);
  }

  async #drain(): Promise<void> {
    const { redis, closing, lease } = this.#parts;
    for (;;) {
      const text = await redis.lindex(this.#queue, 0);
      if (text === null || closing.aborted) return;
      await this.#withTries(text);
      closing.throwIfAborted();
      lease.assert();
      // By value: a process that took over may be at the next one already.
      await redis.lrem(this.#queue, 1, text);
    }
  }

  /** A message that cannot be handled must not hold up those behind it. */
  async #withTries(text: string): Promise<void> {
    const { closing, logger, instance } = this.#parts;
    for (let attempt = 1; ; ) {
      try {
        const { message, name } = readText(Waiting, text);
        await this.#arrived(message, name, attempt < TRIES);
        return;
      } catch (error) {
        closing.throwIfAborted();
        // While Redis or the storage is away nothing can be handled: that is no try.
        const isTry = awayReason(error) === undefined;
        if (isTry && attempt >= TRIES) {
          logger.error({ err: error, instance: instance.name }, 'a message that came in is dropped');
          return;
        }
        await wait(TRY_AGAIN_MS * 4 ** (attempt - 1), undefined, { ref: false, signal: closing });
        if (isTry) attempt += 1;
      }
    }
  }

  async #arrived(message: Message, name: string, mayFail: boolean): Promise<void> {
    const { book, reports, instance, log, session, workspaces, logger } = this.#parts;
    const authorJid = jidOf(message.from, message.from_user_id);
    if (authorJid === undefined) return;
    const isGroup = message.group_id !== undefined;
    const chatJid = message.group_id === undefined ? authorJid : groupJid(message.group_id);
    await book.learn(authorJid, { isGroup: false, name });
    await book.heard(chatJid, { isGroup, lastInId: message.id });
    const quotedId = message.context?.id;
    const report: Omit<IncomingMessage, 'content'> = {
      messageId: message.id,
      chatJid,
      isGroup,
      authorJid,
      authorName: name || localOf(authorJid),
      timestampSeconds: message.timestamp,
      context: {
        quoted:
          quotedId === undefined
            ? undefined
            : { id: (await log.idOf(instance.id, quotedId)) ?? quotedId, text: undefined },
        mentioned: [],
        mentionsEveryOne: false,
        linkPreview: false,
      },
    };
    const media = mediaOf(message);
    const text = textOf(message);
    if (media !== undefined) {
      await workspaces.use('received', async (folder) =>
        reports.messageArrived(instance.id, {
          ...report,
          content: await this.#fetched(media, { folder, mayFail, text: text ?? LOST_VOICE }),
        }),
      );
    } else if (text !== undefined) {
      await reports.messageArrived(instance.id, { ...report, content: { kind: 'text', text } });
    } else {
      return;
    }
    if (session.settings.readMessages && !isGroup) {
      await session
        .markRead(message.id)
        .catch((error: unknown) =>
          logger.warn({ err: error, instance: instance.name }, 'not marked as read'),
        );
    }
  }

  /** …/cloud-api/reference/media: the address is good for 5 minutes, and needs the token. */
  async #fetched(
    { id, video }: NonNullable<ReturnType<typeof mediaOf>>,
    { folder, mayFail, text }: { folder: string; mayFail: boolean; text: string },
  ): Promise<IncomingContent> {
    const { graph, closing, logger, instance } = this.#parts;
    const path = join(folder, 'received');
    try {
      const { url } = await graph.ask({
        method: 'GET',
        path: id,
        answer: MediaAddress,
        signal: closing,
      });
      await graph.save(url, { path, maxBytes: MAX_MEDIA_BYTES }, closing);
      return { kind: 'file', path, video };
    } catch (error) {
      closing.throwIfAborted();
      if (mayFail || awayReason(error) !== undefined) throw error;
      logger.warn({ err: error, instance: instance.name }, 'the media of a message could not be fetched');
      return { kind: 'text', text };
    }
  }

  async #statusChanged(status: z.output<typeof Status>): Promise<void> {
    const { reports, instance } = this.#parts;
    const { id, biz_opaque_callback_data: mark = '', errors, recipient_participant_id: participant } = status;
    // One member whom a group's message does not reach is no failure of the message.
    if (status.status === 'failed' && participant !== undefined) return;
    const details: StatusDetails = {
      networkId: id,
      error: status.status === 'failed' ? faultOf(errors) : undefined,
    };
    await reports.statusChanged(instance.id, OUR_ID.test(mark) ? mark : id, words[status.status], details);
  }

  async #groupChanged(group: z.output<typeof GroupChange>['groups'][number]): Promise<void> {
    const { book, reports, instance } = this.#parts;
    const jid = groupJid(group.group_id);
    await book.learn(jid, { isGroup: true, name: group.subject, inviteUrl: group.invite_link });
    for (const [action, members] of [
      ['add', group.added_participants],
      ['remove', group.removed_participants],
    ] as const) {
      const participants = members.flatMap(({ wa_id: number }) => (number ? [personJid(number)] : []));
      if (participants.length > 0) {
        await reports.participantsChanged(instance.id, { groupJid: jid, action, participants });
      }
    }
  }

  #readable<Schema extends z.ZodType>(schema: Schema, all: readonly unknown[]): z.output<Schema>[] {
    const { logger, instance } = this.#parts;
    return all.flatMap((one) => {
      const parsed = schema.safeParse(one);
      if (!parsed.success)
        logger.warn({ err: parsed.error, instance: instance.name }, 'Meta sent something unknown');
      return parsed.success ? [parsed.data] : [];
    });
  }
}

const nothing = { contacts: [], messages: [], statuses: [] };

function jidOf(number: string | undefined, userId: string | undefined): string | undefined {
  if (number !== undefined) return personJid(number);
  return userId === undefined ? undefined : hiddenJid(userId);
}

function faultOf(errors: z.output<typeof Status>['errors']): NonNullable<StatusDetails['error']> {
  const { code = 0, title, message, error_data: data } = errors?.[0] ?? {};
  if (code === 0) {
    return { code: 'network_refused', message: 'WhatsApp could not deliver the message and gave no reason' };
  }
  const words = data?.details ?? message ?? title ?? 'no reason given';
  return { code: 'network_refused', message: sentenceOf({ code, words }) };
}
