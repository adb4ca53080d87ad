// The voice inbox: signs in, shows the chats of an instance and the messages of one chat, and keeps both live.
import { showChats } from './chat-list.js';
import * as connection from './connection.js';
import { dressAvatar, element, spoken } from './elements.js';
import { isLater } from './status.js';
import { VoiceBubble } from './voice-bubble.js';

const byId = (id) => document.getElementById(id);

const state = {
  instances: [],
  instance: null,
  chats: [],
  /** The open chat, or null. */
  chat: null,
  /** @type {Map<string, VoiceBubble>} bubbles of the open chat by message id */
  bubbles: new Map(),
  feed: null,
};

// --- signing in ---

async function begin() {
  const address = new URL(location.href);
  const code = address.searchParams.get('code');
  if (code !== null) {
    // The code is used up at once; it should not stay in the address or in the history either.
    address.searchParams.delete('code');
    history.replaceState(null, '', address);
    if (!(await connection.signInWithCode(code))) {
      return connection.isSignedIn()
        ? openInbox()
        : askForKey('That link has been used or is older than 10 minutes.');
    }
  }
  return connection.isSignedIn() ? openInbox() : askForKey('');
}

function askForKey(fault) {
  state.feed?.abort();
  connection.signOut();
  byId('inbox').hidden = true;
  byId('sign-in').hidden = false;
  byId('sign-in-error').textContent = fault;
  byId('key').value = '';
  byId('key').focus();
}

byId('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault();
  connection.signInWithKey(byId('key').value.trim());
  void openInbox();
});

byId('sign-out').addEventListener('click', () => askForKey(''));

/** Runs what a click or an event asked for; a key that is no longer good leads back to the question for one. */
async function attempt(work) {
  try {
    await work();
  } catch (error) {
    if (error instanceof connection.NotSignedIn) {
      askForKey('This key does not open the inbox.');
    } else {
      showConnection('lost', 'The gateway does not answer');
    }
  }
}

function openInbox() {
  return attempt(async () => {
    state.instances = await connection.get('instances');
    byId('sign-in').hidden = true;
    byId('inbox').hidden = false;
    const choice = byId('instances');
    choice.replaceChildren(
      ...state.instances.map(({ id, name }) => element('option', { value: id, textContent: name })),
    );
    choice.hidden = state.instances.length < 2;
    await chooseInstance(state.instances[0]);
    followEvents();
  });
}

byId('instances').addEventListener('change', (event) => {
  void attempt(() => chooseInstance(state.instances.find(({ id }) => id === event.target.value)));
});

// --- chats ---

async function chooseInstance(instance) {
  state.instance = instance ?? null;
  closeChat();
  await loadChats();
}

async function loadChats() {
  const { instance } = state;
  if (instance === null) {
    byId('chats').replaceChildren();
    return;
  }
  const chats = await connection.get(`instances/${instance.id}/chats`);
  if (state.instance === instance) {
    state.chats = chats;
    showList();
  }
}

function showList() {
  showChats(byId('chats'), state.chats, state.chat?.jid, (jid) => attempt(() => openChat(jid)));
}

// --- one chat ---

const chatPath = (jid) => `instances/${state.instance.id}/chats/${encodeURIComponent(jid)}`;

async function openChat(jid) {
  const chat = state.chats.find((candidate) => candidate.jid === jid);
  clearMessages();
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
  await loadMessages();
  await tellOpened();
}

async function loadMessages() {
  const { chat } = state;
  const messages = await connection.get(`${chatPath(chat.jid)}/messages`);
  if (state.chat !== chat) {
    return;
  }
  for (const message of messages) {
    addMessage(message);
  }
  if (messages.length === 0) {
    byId('messages').replaceChildren(
      element('li', { class: 'empty', textContent: 'No voice messages yet.' }),
    );
  }
  scrollToEnd();
}

function addMessage(message) {
  const known = state.bubbles.get(message.key.id);
  if (known !== undefined) {
    moveStatus(message.key.id, message.status);
    return;
  }
  const { chat } = state;
  const bubble = new VoiceBubble(message, () => {
    void attempt(() =>
      connection.post(`${chatPath(chat.jid)}/messages/${encodeURIComponent(message.key.id)}/played`),
    );
  });
  byId('messages').querySelector('.empty')?.remove();
  state.bubbles.set(message.key.id, bubble);
  byId('messages').append(bubble.node);
}

function moveStatus(messageId, status) {
  const bubble = state.bubbles.get(messageId);
  if (bubble !== undefined && isLater(status, bubble.status)) {
    bubble.setStatus(status);
  }
}

/** Somebody looks at the open chat, which is how its messages become read. */
async function tellOpened() {
  if (state.chat !== null && !state.instance.readOnly && document.visibilityState === 'visible') {
    await connection.post(`${chatPath(state.chat.jid)}/opened`);
  }
}

document.addEventListener('visibilitychange', () => void attempt(tellOpened));

function clearMessages() {
  for (const bubble of state.bubbles.values()) {
    bubble.dispose();
  }
  state.bubbles.clear();
  byId('messages').replaceChildren();
}

function closeChat() {
  clearMessages();
  state.chat = null;
  byId('inbox').classList.remove('chat-open');
  byId('nothing-open').hidden = false;
  byId('chat-head').hidden = true;
  byId('messages').hidden = true;
}

byId('back').addEventListener('click', () => {
  const left = state.chat?.jid;
  closeChat();
  showList();
  [...byId('chats').querySelectorAll('button')].find((button) => button.dataset.jid === left)?.focus();
});

function showDetail(presence) {
  const { chat } = state;
  const detail = byId('chat-detail');
  const doing = { recording: 'recording…', composing: 'typing…' }[presence];
  detail.classList.toggle('doing', doing !== undefined);
  detail.textContent = doing
    ? `${state.instance.name} is ${doing}`
    : chat.isGroup
      ? 'Group'
      : `+${chat.jid.split('@')[0]}`;
}

function scrollToEnd() {
  const list = byId('messages');
  list.scrollTop = list.scrollHeight;
}

// --- what happens meanwhile ---

function followEvents() {
  state.feed?.abort();
  state.feed = new AbortController();
  void connection.follow({
    signal: state.feed.signal,
    onOpen: () => {
      showConnection('live', 'Live');
      // Also after a break: the feed resumes, but a longer absence may be more than it remembers.
      void attempt(refresh);
    },
    onLost: () => showConnection('lost', 'Connection lost, trying again…'),
    onSignedOut: () => askForKey('This key does not open the inbox any more.'),
    onEvent: (name, { instanceId, envelope }) => {
      if (instanceId === state.instance?.id) {
        void attempt(() => handle(name, envelope.data));
      }
    },
  });
}

async function refresh() {
  await loadChats();
  if (state.chat !== null) {
    await loadMessages();
  }
}

async function handle(name, data) {
  if (name === 'messages.upsert') {
    await messageCame(data);
  } else if (name === 'messages.update') {
    statusMoved(data);
  } else if (name === 'presence.update' && data.id === state.chat?.jid) {
    showDetail(Object.values(data.presences)[0]?.lastKnownPresence);
  }
}

async function messageCame({ key }) {
  await loadChats();
  const chat = state.chats.find(({ jid }) => jid === key.remoteJid);
  const { lastMessage } = chat ?? {};
  if (lastMessage) {
    const direction = key.fromMe ? 'to' : 'from';
    byId('announcements').textContent =
      `New voice message ${direction} ${chat.name}, ${spoken(lastMessage.message.audioMessage.seconds)}`;
  }
  if (key.remoteJid === state.chat?.jid) {
    await loadMessages();
    await tellOpened();
  }
}

function statusMoved({ key, status }) {
  moveStatus(key.id, status);
  const chat = state.chats.find(({ jid }) => jid === key.remoteJid);
  const last = chat?.lastMessage;
  if (last?.key.id === key.id && isLater(status, last.status)) {
    last.status = status;
    showList();
  }
}

function showConnection(kind, text) {
  const node = byId('connection');
  node.className = `connection ${kind}`;
  node.textContent = text;
}

void begin();
