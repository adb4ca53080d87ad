/** What happens while the page is open, event by event. */
import type { GatewayEventData } from 'soundpost-contract/gateway-events';
import type { InboxEventEnvelope } from 'soundpost-contract/inbox';
import { spoken } from '../shared/time.ts';
import { callChanged } from './calls.ts';
import { lastMessageChanged, loadChats } from './chats.ts';
import { messageChanged, refreshConversation, showDetail, statusMoved, tellOpened } from './conversation.ts';
import { announce, state } from './state.ts';
import { textOf } from './text-bubble.ts';

export async function handleEvent({ event, data }: InboxEventEnvelope): Promise<void> {
  switch (event) {
    case 'messages.upsert':
      await messageCame(data);
      break;
    case 'messages.update':
      messageMoved(data);
      break;
    case 'presence.update':
      presenceChanged(data);
      break;
    case 'call':
      callChanged(data);
      break;
    case 'group-participants.update':
      await loadChats();
      break;
  }
}

async function messageCame({ key, message }: GatewayEventData['messages.upsert']): Promise<void> {
  await loadChats();
  const chat = state.chats.find(({ jid }) => jid === key.remoteJid);
  if (chat !== undefined) {
    const what =
      'audioMessage' in message
        ? `New voice message, ${spoken(message.audioMessage.seconds)},`
        : `New message: ${textOf(message)}`;
    announce(`${what} ${key.fromMe ? 'to' : 'in the chat with'} ${chat.name}`);
  }
  if (key.remoteJid === state.chat?.jid) {
    await refreshConversation();
    await tellOpened();
  }
}

function messageMoved({ key, status, message }: GatewayEventData['messages.update']): void {
  statusMoved(key.id, status);
  if (message !== undefined) {
    messageChanged(key.id, message);
  }
  lastMessageChanged(key, status, message);
}

/** Somebody writes in the open chat, or the instance itself comes or goes. */
function presenceChanged({ id, presences }: GatewayEventData['presence.update']): void {
  const [first] = Object.entries(presences);
  if (first === undefined || (id !== state.chat?.jid && id !== state.instance?.ownJid)) {
    return;
  }
  const [jid, { lastKnownPresence: presence }] = first;
  // Who plays somebody knows what they are doing.
  if (jid !== state.persona?.jid) {
    showDetail({ jid, presence });
  }
}
