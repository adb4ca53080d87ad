// The list of chats on the left.
import { clock, dressAvatar, element, icon } from './elements.js';
import { tick } from './status.js';

/** @param {HTMLElement} list @param chats as the data route gives them @param {(jid: string) => void} onOpen */
export function showChats(list, chats, openJid, onOpen) {
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.jid : undefined;
  list.replaceChildren(
    ...chats.map((chat) => element('li', {}, chatButton(chat, chat.jid === openJid, onOpen))),
  );
  if (focused !== undefined) {
    [...list.querySelectorAll('button')].find((button) => button.dataset.jid === focused)?.focus();
  }
}

function chatButton(chat, isOpen, onOpen) {
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
  if (isOpen) {
    button.setAttribute('aria-current', 'true');
  }
  button.addEventListener('click', () => onOpen(chat.jid));
  return button;
}

const isHeard = ({ status }) => status === 'READ' || status === 'PLAYED';

function preview(message) {
  const { seconds } = message.message.audioMessage;
  return element(
    'span',
    { class: 'chat-last' },
    message.key.fromMe ? tick(message.status) : null,
    icon('mic'),
    element('span', { class: 'visually-hidden', textContent: 'Voice message' }),
    ` ${clock(seconds)}`,
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
