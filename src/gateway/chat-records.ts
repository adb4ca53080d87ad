/** An instance's chats: from the log, from the network, and the rest of its address book. */

import { parseAddress } from 'soundpost-chat/address';
import type { Instance } from 'soundpost-chat/instances';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { Chat, Session } from 'soundpost-chat/transport';
import type { ChatRecord } from 'soundpost-contract/gateway-operations';

/** Messages searched for a name. */
const RECENT_MESSAGES = 20;

/** A chat with its last message; `updatedAtMs` is null if there is none. */
interface ChatOverview extends Chat {
  readonly updatedAtMs: number | null;
  readonly unreadCount: number;
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
  const summaries = new Map(logged.map((summary) => [summary.jid, summary] as const));
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
      const [last] = await log.messages(instance.id, jid, 1);
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

/** Someone in no address book, named as in a message or by the network. */
async function describeStranger(
  instance: Instance,
  session: Session,
  jid: string,
  log: MessageLog,
): Promise<Pick<Chat, 'name' | 'isGroup'>> {
  const messages = await log.messages(instance.id, jid, RECENT_MESSAGES);
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
