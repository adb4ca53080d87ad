// The open chat: its head, its messages, and who is doing something in it.

import { dressAvatar } from './avatar.js';
import { endCall } from './calls.js';
import { showList } from './chats.js';
import { closeComposer, openComposer } from './composer.js';
import * as connection from './connection.js';
import { loadPeople, nameOf } from './people.js';
import { element } from './shared/elements.js';
import { attempt } from './sign-in.js';
import { byId, chatPath, state } from './state.js';
import { isLater } from './status.js';
import { TextBubble } from './text-bubble.js';
import { VoiceBubble } from './voice-bubble.js';

/** A presence that nobody ends is over after this. */
const PRESENCE_LASTS_MS = 65_000;

/** Bubbles of the open chat by message id. */
const bubbles = new Map();
let presenceEnds = 0;

export async function openChat(jid) {
  const chat = state.chats.find((candidate) => candidate.jid === jid);
  clearMessages();
  closeComposer();
  state.chat = chat;
  byId('inbox').classList.add('chat-open');
  byId('nothing-open').hidden = true;
  byId('chat-head').hidden = false;
  byId('messages').hidden = false;
  byId('chat-name').textContent = chat.name;
  dressAvatar(byId('chat-avatar'), chat);
  showDetail();
  showList();
  byId('chat-name').focus({ preventScroll: true });
  await Promise.all([loadMessages(), loadPeople()]);
  if (state.chat === chat) {
    openComposer();
    scrollToEnd();
    await tellOpened();
  }
}

export function closeChat() {
  clearMessages();
  closeComposer();
  endCall();
  state.chat = null;
  byId('inbox').classList.remove('chat-open');
  byId('nothing-open').hidden = false;
  byId('chat-head').hidden = true;
  byId('messages').hidden = true;
}

/** Reads the open chat anew. */
export async function refreshConversation() {
  if (state.chat !== null) {
    await loadMessages();
  }
}

async function loadMessages() {
  const { chat } = state;
  const messages = await connection.get(`${chatPath(chat)}/messages`);
  if (state.chat !== chat) {
    return;
  }
  for (const message of messages) {
    addMessage(message);
  }
  if (messages.length === 0) {
    byId('messages').replaceChildren(element('li', { class: 'empty', textContent: 'No messages yet.' }));
  }
  scrollToEnd();
}

function addMessage(message) {
  const { id } = message.key;
  if (bubbles.has(id)) {
    statusMoved(id, message.status);
    if (message.edited) {
      messageChanged(id, message.message);
    }
    return;
  }
  const bubble = makeBubble(message);
  byId('messages').querySelector('.empty')?.remove();
  bubbles.set(id, bubble);
  byId('messages').append(bubble.node);
}

function makeBubble(message) {
  if (message.message.audioMessage === undefined) {
    return new TextBubble(message);
  }
  const played = `${chatPath()}/messages/${encodeURIComponent(message.key.id)}/played`;
  const { readOnly } = state.instance;
  return new VoiceBubble(message, () => {
    if (!readOnly) {
      void attempt(() => connection.post(played));
    }
  });
}

export function statusMoved(messageId, status) {
  const bubble = bubbles.get(messageId);
  if (bubble !== undefined && isLater(status, bubble.status)) {
    bubble.setStatus(status);
  }
}

/** @param content the message as it reads now */
export function messageChanged(messageId, content) {
  bubbles.get(messageId)?.setContent(content);
}

/** Somebody looks at the open chat, which is how its messages become read. */
export async function tellOpened() {
  if (state.chat !== null && !state.instance.readOnly && document.visibilityState === 'visible') {
    await connection.post(`${chatPath()}/opened`);
  }
}

document.addEventListener('visibilitychange', () => void attempt(tellOpened));

function clearMessages() {
  for (const bubble of bubbles.values()) {
    bubble.dispose();
  }
  bubbles.clear();
  byId('messages').replaceChildren();
}

/** What stands below the name: who does what, or else what the chat is. @param {string} [jid] of who it is */
export function showDetail(jid, presence) {
  const { chat } = state;
  clearTimeout(presenceEnds);
  if (chat === null) {
    return;
  }
  const detail = byId('chat-detail');
  const doing = { recording: 'is recording…', composing: 'is typing…', available: 'is online' }[presence];
  detail.classList.toggle('doing', doing !== undefined);
  if (doing === undefined) {
    detail.textContent = chat.isGroup ? 'Group' : addressOf(chat.jid);
    return;
  }
  detail.textContent = `${nameOf(jid)} ${doing}`;
  presenceEnds = setTimeout(() => showDetail(), PRESENCE_LASTS_MS);
}

/** A number as people write it; any other address as it is. */
function addressOf(jid) {
  const [local] = jid.split('@');
  return /^\d+$/.test(local) ? `+${local}` : jid;
}

function scrollToEnd() {
  const list = byId('messages');
  list.scrollTop = list.scrollHeight;
}

/** Whether the last message was in view before the list changed its height. */
let atEnd = true;
byId('messages').addEventListener('scroll', (event) => {
  const { scrollTop, scrollHeight, clientHeight } = event.target;
  atEnd = scrollHeight - scrollTop - clientHeight < 24;
});
// What opens above or below the messages takes their room; the last one stays in view.
new ResizeObserver(() => {
  if (atEnd) {
    scrollToEnd();
  }
}).observe(byId('messages'));
