// The list of chats on the left.

import { dressAvatar } from './avatar.js';
import { get } from './connection.js';
import { clock, element, icon } from './shared/elements.js';
import { byId, state } from './state.js';
import { tick } from './status.js';

let onOpen = () => undefined;

/** Asks for the chats of the chosen instance. @param {(jid: string) => void} [open] called for a chat that was clicked */
export async function loadChats(open) {
  onOpen = open ?? onOpen;
  const { instance } = state;
  const chats = instance === null ? [] : await get(`instances/${instance.id}/chats`);
  if (state.instance === instance) {
    state.chats = chats;
    showList();
  }
}

export function showList() {
  const list = byId('chats');
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.jid : undefined;
  list.replaceChildren(...state.chats.map((chat) => element('li', {}, chatButton(chat))));
  if (focused !== undefined) {
    [...list.querySelectorAll('button')].find((button) => button.dataset.jid === focused)?.focus();
  }
}

function chatButton(chat) {
  const { lastMessage } = chat;
  const avatar = element('span', { 'aria-hidden': 'true' });
  dressAvatar(avatar, chat);
  const unheard = lastMessage !== null && !isHeard(lastMessage);
  const button = element(
    'button',
    { type: 'button', class: `chat${unheard ? ' unheard' : ''}` },
    avatar,
    element('span', { class: 'chat-name', textContent: chat.name }),
    chat.updatedAtMs === null ? null : timeOf(chat.updatedAtMs),
    lastMessage === null
      ? element('span', { class: 'chat-last', textContent: 'No messages yet' })
      : preview(lastMessage),
  );
  button.dataset.jid = chat.jid;
  if (chat.jid === state.chat?.jid) {
    button.setAttribute('aria-current', 'true');
  }
  button.addEventListener('click', () => onOpen(chat.jid));
  return button;
}

const isHeard = ({ status }) => status === 'READ' || status === 'PLAYED';

function preview({ key, message, status }) {
  const { audioMessage, conversation } = message;
  return element(
    'span',
    { class: 'chat-last' },
    key.fromMe ? tick(status) : null,
    ...(audioMessage === undefined
      ? [element('span', { class: 'chat-text', textContent: conversation })]
      : [
          icon('mic'),
          element('span', { class: 'visually-hidden', textContent: 'Voice message' }),
          element('span', {
            class: 'chat-text',
            textContent: `${clock(audioMessage.seconds)}${audioMessage.caption ? ` · ${audioMessage.caption}` : ''}`,
          }),
        ]),
  );
}

function timeOf(ms) {
  const at = new Date(ms);
  const today = at.toDateString() === new Date().toDateString();
  return element('time', {
    class: 'chat-time',
    dateTime: at.toISOString(),
    textContent: today
      ? at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
      : at.toLocaleDateString([], { day: 'numeric', month: 'short' }),
  });
}
