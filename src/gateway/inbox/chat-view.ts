/** What the inbox page shows of chats and messages. */
import type { Instance } from '../instances.ts';
import type { LoggedMessage, MessageLog } from '../message-log.ts';
import type { Session } from '../transport.ts';

/** A page shows this many of a chat's last messages. */
const PAGE_MESSAGES = 200;

interface ChatView {
  readonly jid: string;
  readonly name: string;
  readonly isGroup: boolean;
  /** ms since 1970; null for a chat without messages. */
  readonly updatedAtMs: number | null;
  readonly unreadCount: number;
  readonly lastMessage: MessageView | null;
}

interface MessageView extends Pick<LoggedMessage, 'key' | 'authorName' | 'message' | 'context' | 'status'> {
  readonly timestampSeconds: number;
}

/** Chats with messages first, the newest at the top; then the rest of the address book. */
export async function listChats(instance: Instance, session: Session, log: MessageLog): Promise<ChatView[]> {
  const [active, contacts] = await Promise.all([log.chats(instance.id), session.contacts()]);
  const known = new Map(contacts.map((contact) => [contact.jid, contact]));
  const views = await Promise.all(
    active.map(async ({ jid, updatedAtMs, unreadCount }): Promise<ChatView> => {
      const [last] = await log.messages(instance.id, jid, 1);
      return {
        jid,
        name: known.get(jid)?.name ?? last?.authorName ?? jid,
        isGroup: known.get(jid)?.isGroup ?? false,
        updatedAtMs,
        unreadCount,
        lastMessage: last === undefined ? null : messageView(last),
      };
    }),
  );
  const started = new Set(active.map(({ jid }) => jid));
  const quiet = contacts
    .filter(({ jid }) => !started.has(jid))
    .map(({ jid, name, isGroup }) => ({
      jid,
      name,
      isGroup,
      updatedAtMs: null,
      unreadCount: 0,
      lastMessage: null,
    }));
  return [...views, ...quiet];
}

/** Oldest first. */
export async function listMessages(
  instance: Instance,
  chatJid: string,
  log: MessageLog,
): Promise<MessageView[]> {
  const messages = await log.messages(instance.id, chatJid, PAGE_MESSAGES);
  return messages.map(messageView);
}

function messageView({
  key,
  authorName,
  message,
  context,
  status,
  timestampSeconds,
}: LoggedMessage): MessageView {
  return { key, authorName, message, context, status, timestampSeconds };
}
