/** An instance's chats: from the log, from the network, and the rest of its address book. */

import { parseAddress } from 'soundpost-chat/address';
import type { Instance } from 'soundpost-chat/instances';
import type { LoggedMessage, MessageLog } from 'soundpost-chat/message-log';
import type { Chat, Session } from 'soundpost-chat/transport';
import type { ChatRecord } from 'soundpost-contract/gateway-operations';

/** Messages searched for a name. */
const RECENT_MESSAGES = 20;

/** A chat with its last message; `updatedAtMs` is null if there is none. */
interface ChatOverview extends Chat {
  readonly updatedAtMs: number | null;
  readonly unreadCount: number;
}

/** The last `limit` messages with a person, under whichever of their addresses; oldest first. */
export async function messagesOf(
  instance: Instance,
  session: Session,
  jid: string,
  limit: number,
  log: MessageLog,
): Promise<LoggedMessage[]> {
  const addresses = (await session.addressesOf?.(jid)) ?? [jid];
  // The shown address is the one that was learned last.
  const all = await Promise.all(addresses.toReversed().map((one) => log.messages(instance.id, one, limit)));
  const [only = [], ...others] = all.filter((messages) => messages.length > 0);
  if (others.length === 0) {
    return only;
  }
  const byTime = all.flat().toSorted((a, b) => a.timestampSeconds - b.timestampSeconds);
  return byTime.slice(-limit);
}

/** Chats with messages first, newest at the top. */
export async function listChats(
  instance: Instance,
  session: Session,
  log: MessageLog,
): Promise<ChatOverview[]> {
  const [logged, contacts, archived] = await Promise.all([
    log.chats(instance.id),
    session.contacts(),
    session.chats?.() ?? [],
  ]);
  const summaries = await byPerson(session, logged);
  const times = new Map(archived.map(({ jid, updatedAtMs }) => [jid, updatedAtMs]));
  const known = new Map<string, Chat>([...archived, ...contacts].map((chat) => [chat.jid, chat]));
  const chats = await Promise.all(
    [...new Set([...summaries.keys(), ...known.keys()])].map(async (jid): Promise<ChatOverview> => {
      const { name, isGroup } = known.get(jid) ?? (await describeStranger(instance, session, jid, log));
      const summary = summaries.get(jid);
      const updatedAtMs = Math.max(summary?.updatedAtMs ?? 0, times.get(jid) ?? 0);
      return {
        jid,
        name,
        isGroup,
        updatedAtMs: updatedAtMs === 0 ? null : updatedAtMs,
        unreadCount: summary?.unreadCount ?? 0,
      };
    }),
  );
  return chats.toSorted((one, other) => (other.updatedAtMs ?? 0) - (one.updatedAtMs ?? 0));
}

export async function chatRecords(
  instance: Instance,
  session: Session,
  log: MessageLog,
): Promise<ChatRecord[]> {
  const chats = await listChats(instance, session, log);
  return Promise.all(
    chats.map(async ({ jid, name, isGroup, updatedAtMs, unreadCount }) => {
      const [last] = await messagesOf(instance, session, jid, 1, log);
      return {
        id: jid,
        remoteJid: jid,
        pushName: name,
        isGroup,
        updatedAt: updatedAtMs === null ? null : new Date(updatedAtMs).toISOString(),
        unreadCount,
        lastMessage: last === undefined ? null : await log.answer(last, last.status),
      };
    }),
  );
}

/** By the JID under which each person is listed. */
async function byPerson(
  session: Session,
  logged: Awaited<ReturnType<MessageLog['chats']>>,
): Promise<Map<string, { updatedAtMs: number; unreadCount: number }>> {
  const summaries = new Map<string, { updatedAtMs: number; unreadCount: number }>();
  for (const { jid, updatedAtMs, unreadCount } of logged) {
    const [listed = jid] = (await session.addressesOf?.(jid)) ?? [];
    const other = summaries.get(listed);
    summaries.set(listed, {
      updatedAtMs: Math.max(updatedAtMs, other?.updatedAtMs ?? 0),
      unreadCount: unreadCount + (other?.unreadCount ?? 0),
    });
  }
  return summaries;
}

/** Someone in no address book, named as in a message or by the network. */
async function describeStranger(
  instance: Instance,
  session: Session,
  jid: string,
  log: MessageLog,
): Promise<Pick<Chat, 'name' | 'isGroup'>> {
  const messages = await messagesOf(instance, session, jid, RECENT_MESSAGES, log);
  const name = messages.findLast(({ key }) => !key.fromMe)?.authorName;
  if (name !== undefined) {
    return { name, isGroup: false };
  }
  try {
    return await session.resolve(parseAddress(jid, 'chat'), 'chat');
  } catch {
    // Someone who has left the network is named by number.
    return { name: jid.slice(0, jid.indexOf('@')), isGroup: false };
  }
}
