/** What the inbox page shows of chats and messages. */

import type { Instance } from 'soundpost-chat/instances';
import type { MessageLog } from 'soundpost-chat/message-log';
import type { LoggedMessage } from 'soundpost-chat/message-record';
import type { Session } from 'soundpost-chat/transport';
import type { InboxChat, InboxMessage } from 'soundpost-contract/inbox';
import { listChats } from '../chat-records.ts';

/** A page shows this many of a chat's last messages. */
const PAGE_MESSAGES = 200;

/** Chats with messages first, the newest at the top; then the rest of the address book. */
export async function chatViews(instance: Instance, session: Session, log: MessageLog): Promise<InboxChat[]> {
  const chats = await listChats(instance, session, log);
  return Promise.all(
    chats.map(async (chat) => {
      const [last] = await log.messages(instance.id, chat.jid, 1);
      return { ...chat, lastMessage: last === undefined ? null : messageView(last) };
    }),
  );
}

/** Oldest first. */
export async function listMessages(
  instance: Instance,
  chatJid: string,
  log: MessageLog,
): Promise<InboxMessage[]> {
  const messages = await log.messages(instance.id, chatJid, PAGE_MESSAGES);
  return messages.map(messageView);
}

function messageView({
  key,
  authorJid,
  authorName,
  message,
  context,
  status,
  edited,
  timestampSeconds,
}: LoggedMessage): InboxMessage {
  return {
    key,
    ...(authorJid === undefined ? {} : { authorJid }),
    ...(authorName === undefined ? {} : { authorName }),
    message,
    context,
    status,
    edited,
    timestampSeconds,
  };
}
