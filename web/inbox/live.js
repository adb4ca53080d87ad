// What happens while the page is open, event by event.
import { callChanged } from './calls.js';
import { loadChats, showList } from './chats.js';
import { messageChanged, refreshConversation, showDetail, statusMoved, tellOpened } from './conversation.js';
import { spoken } from './shared/elements.js';
import { announce, state } from './state.js';
import { isLater } from './status.js';

/** @param {string} name of the event @param data as the contract has it for that event */
export async function handleEvent(name, data) {
  if (name === 'messages.upsert') {
    await messageCame(data);
  } else if (name === 'messages.update') {
    messageMoved(data);
  } else if (name === 'presence.update') {
    presenceChanged(data);
  } else if (name === 'call') {
    callChanged(data);
  } else if (name === 'group-participants.update') {
    await loadChats();
  }
}

async function messageCame({ key, message }) {
  await loadChats();
  const chat = state.chats.find(({ jid }) => jid === key.remoteJid);
  if (chat !== undefined) {
    const what =
      message.audioMessage === undefined
        ? `New message: ${message.conversation}`
        : `New voice message, ${spoken(message.audioMessage.seconds)},`;
    announce(`${what} ${key.fromMe ? 'to' : 'in the chat with'} ${chat.name}`);
  }
  if (key.remoteJid === state.chat?.jid) {
    await refreshConversation();
    await tellOpened();
  }
}

function messageMoved({ key, status, message }) {
  statusMoved(key.id, status);
  if (message !== undefined) {
    messageChanged(key.id, message);
  }
  const last = state.chats.find(({ jid }) => jid === key.remoteJid)?.lastMessage;
  if (last?.key.id !== key.id) {
    return;
  }
  if (isLater(status, last.status)) {
    last.status = status;
  }
  last.message = message ?? last.message;
  showList();
}

/** Somebody writes in the open chat, or the instance itself comes or goes. */
function presenceChanged({ id, presences }) {
  const [[jid, { lastKnownPresence }] = []] = Object.entries(presences);
  if (jid === undefined || (id !== state.chat?.jid && id !== state.instance.ownJid)) {
    return;
  }
  // Who plays somebody knows what they are doing.
  if (jid !== state.persona?.jid) {
    showDetail(jid, lastKnownPresence);
  }
}
