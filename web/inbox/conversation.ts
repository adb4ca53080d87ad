/** The open chat: its head, its messages, and who is doing something in it. */
import type { MessageContent } from 'soundpost-contract/gateway';
import type { InboxMessage } from 'soundpost-contract/inbox';
import type { MessageStatus } from 'soundpost-contract/job';
import { dressAvatar } from './avatar.ts';
import { endCall } from './calls.ts';
import { showList } from './chats.ts';
import { closeComposer, openComposer } from './composer.ts';
import * as connection from './connection.ts';
import { element } from './elements.ts';
import { loadPeople, nameOf } from './people.ts';
import { attempt } from './sign-in.ts';
import { byId, chatPath, type OpenChat, openedChat, state } from './state.ts';
import { isLater } from './status.ts';
import { TextBubble, textOf } from './text-bubble.ts';
import { VoiceBubble } from './voice-bubble.ts';

/** A presence that nobody ends is over after this. */
const PRESENCE_LASTS_MS = 65_000;
const doings: Readonly<Record<string, string>> = {
  recording: 'is recording…',
  composing: 'is typing…',
  available: 'is online',
};

const list = byId('messages');
/** Bubbles of the open chat by message id. */
const bubbles = new Map<string, TextBubble | VoiceBubble>();
let presenceEnds: ReturnType<typeof setTimeout> | undefined;

export async function openChat(jid: string): Promise<void> {
  const { instance } = state;
  const chat = state.chats.find((candidate) => candidate.jid === jid);
  if (instance === null || chat === undefined) {
    return;
  }
  clearMessages();
  closeComposer();
  state.chat = chat;
  byId('inbox').classList.add('chat-open');
  byId('nothing-open').hidden = true;
  byId('chat-head').hidden = false;
  list.hidden = false;
  byId('chat-name').textContent = chat.name;
  dressAvatar(byId('chat-avatar'), chat);
  showDetail();
  showList();
  byId('chat-name').focus({ preventScroll: true });
  const open = { instance, chat };
  await Promise.all([loadMessages(open), loadPeople(open)]);
  if (state.chat === chat) {
    openComposer(instance);
    scrollToEnd();
    await tellOpened();
  }
}

export function closeChat(): void {
  clearMessages();
  closeComposer();
  endCall();
  state.chat = null;
  byId('inbox').classList.remove('chat-open');
  byId('nothing-open').hidden = false;
  byId('chat-head').hidden = true;
  list.hidden = true;
}

/** Reads the open chat anew. */
export async function refreshConversation(): Promise<void> {
  const open = openedChat();
  if (open !== null) {
    await loadMessages(open);
  }
}

async function loadMessages(open: OpenChat): Promise<void> {
  const messages = await connection.get<InboxMessage[]>(`${chatPath(open)}/messages`);
  if (state.chat !== open.chat) {
    return;
  }
  for (const message of messages) {
    addMessage(message, open);
  }
  if (messages.length === 0) {
    list.replaceChildren(element('li', { class: 'empty', textContent: 'No messages yet.' }));
  }
  scrollToEnd();
}

function addMessage(message: InboxMessage, open: OpenChat): void {
  const { id } = message.key;
  if (bubbles.has(id)) {
    statusMoved(id, message.status);
    if (message.edited) {
      messageChanged(id, message.message);
    }
    return;
  }
  const bubble = makeBubble(message, open);
  list.querySelector('.empty')?.remove();
  bubbles.set(id, bubble);
  list.append(bubble.node);
}

function makeBubble(message: InboxMessage, open: OpenChat): TextBubble | VoiceBubble {
  if (!('audioMessage' in message.message)) {
    return new TextBubble(message, textOf(message.message));
  }
  const played = `${chatPath(open)}/messages/${encodeURIComponent(message.key.id)}/played`;
  return new VoiceBubble(message, message.message.audioMessage, () => {
    if (!open.instance.readOnly) {
      void attempt(() => connection.tell(played));
    }
  });
}

export function statusMoved(messageId: string, status: MessageStatus): void {
  const bubble = bubbles.get(messageId);
  if (bubble !== undefined && isLater(status, bubble.status)) {
    bubble.setStatus(status);
  }
}

/** @param content the message as it reads now */
export function messageChanged(messageId: string, content: MessageContent): void {
  bubbles.get(messageId)?.setContent(content);
}

/** Somebody looks at the open chat, which is how its messages become read. */
export async function tellOpened(): Promise<void> {
  const open = openedChat();
  if (open !== null && !open.instance.readOnly && document.visibilityState === 'visible') {
    await connection.tell(`${chatPath(open)}/opened`);
  }
}

document.addEventListener('visibilitychange', () => void attempt(tellOpened));

function clearMessages(): void {
  for (const bubble of bubbles.values()) {
    bubble.dispose();
  }
  bubbles.clear();
  list.replaceChildren();
}

/** What stands below the name: what somebody does, or else what the chat is. */
export function showDetail(somebody?: { readonly jid: string; readonly presence: string }): void {
  const { chat } = state;
  clearTimeout(presenceEnds);
  if (chat === null) {
    return;
  }
  const detail = byId('chat-detail');
  const doing = somebody && doings[somebody.presence];
  detail.classList.toggle('doing', doing !== undefined);
  if (doing === undefined) {
    detail.textContent = chat.isGroup ? 'Group' : addressOf(chat.jid);
    return;
  }
  detail.textContent = `${nameOf(somebody?.jid ?? '')} ${doing}`;
  presenceEnds = setTimeout(() => showDetail(), PRESENCE_LASTS_MS);
}

/** A number as people write it; any other address as it is. */
function addressOf(jid: string): string {
  const [local = ''] = jid.split('@');
  return /^\d+$/.test(local) ? `+${local}` : jid;
}

function scrollToEnd(): void {
  list.scrollTop = list.scrollHeight;
}

/** Whether the last message was in view before the list changed its height. */
let atEnd = true;
list.addEventListener('scroll', () => {
  const { scrollTop, scrollHeight, clientHeight } = list;
  atEnd = scrollHeight - scrollTop - clientHeight < 24;
});
// What opens above or below the messages takes their room; the last one stays in view.
new ResizeObserver(() => {
  if (atEnd) {
    scrollToEnd();
  }
}).observe(list);
