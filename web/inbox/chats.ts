/** The list of chats on the left. */
import type { MessageContent } from 'soundpost-contract/gateway';
import type { InboxChat, InboxMessage } from 'soundpost-contract/inbox';
import type { MessageKey, MessageStatus } from 'soundpost-contract/job';
import { dressAvatar } from './avatar.ts';
import { get } from './connection.ts';
import { clock, element, icon } from './elements.ts';
import { byId, state } from './state.ts';
import { isLater, tick } from './status.ts';
import { textOf } from './text-bubble.ts';

let onOpen: (jid: string) => void = () => undefined;

/** Asks for the chats of the chosen instance. @param open called for a chat that was clicked; default: as before */
export async function loadChats(open?: (jid: string) => void): Promise<void> {
  onOpen = open ?? onOpen;
  const { instance } = state;
  const chats = instance === null ? [] : await get<InboxChat[]>(`instances/${instance.id}/chats`);
  if (state.instance === instance) {
    state.chats = chats;
    showList();
  }
}

export function showList(): void {
  const focused = buttons().find((button) => button === document.activeElement)?.dataset.jid;
  byId('chats').replaceChildren(...state.chats.map((chat) => element('li', {}, chatButton(chat))));
  if (focused !== undefined) {
    focusOn(focused);
  }
}

/** Puts the focus on a chat of the list, if it is there. */
export function focusOn(jid: string): void {
  buttons()
    .find((button) => button.dataset.jid === jid)
    ?.focus();
}

const buttons = (): HTMLButtonElement[] => [...byId('chats').querySelectorAll('button')];

/** The last message of its chat may be shown in the list: its status moved on, or it reads differently now. */
export function lastMessageChanged(key: MessageKey, status: MessageStatus, content?: MessageContent): void {
  state.chats = state.chats.map((chat) => {
    const { jid, lastMessage: last } = chat;
    if (jid !== key.remoteJid || last?.key.id !== key.id) {
      return chat;
    }
    const lastMessage = {
      ...last,
      status: isLater(status, last.status) ? status : last.status,
      message: content ?? last.message,
    };
    return { ...chat, lastMessage };
  });
  showList();
}

function chatButton(chat: InboxChat): HTMLButtonElement {
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

const isHeard = ({ status }: InboxMessage): boolean => status === 'READ' || status === 'PLAYED';

function preview({ key, message, status }: InboxMessage): HTMLElement {
  return element(
    'span',
    { class: 'chat-last' },
    key.fromMe ? tick(status) : null,
    ...('audioMessage' in message
      ? [
          icon('mic'),
          element('span', { class: 'visually-hidden', textContent: 'Voice message' }),
          element('span', { class: 'chat-text', textContent: lengthAndCaption(message.audioMessage) }),
        ]
      : [element('span', { class: 'chat-text', textContent: textOf(message) })]),
  );
}

function lengthAndCaption({
  seconds,
  caption = '',
}: {
  seconds: number;
  caption?: string | undefined;
}): string {
  return `${clock(seconds)}${caption === '' ? '' : ` · ${caption}`}`;
}

function timeOf(ms: number): HTMLElement {
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
