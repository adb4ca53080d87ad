// The voice inbox: signs in, chooses an instance, and keeps everything that it shows live.
import { loadChats, showList } from './chats.js';
import * as connection from './connection.js';
import { closeChat, openChat, refreshConversation } from './conversation.js';
import { answerInvitation } from './invitation.js';
import { handleEvent } from './live.js';
import { element } from './shared/elements.js';
import { askForKey, attempt, begin, showConnection, showInbox } from './sign-in.js';
import { byId, state } from './state.js';

let feed = null;

function openInbox() {
  return attempt(async () => {
    state.instances = await connection.get('instances');
    showInbox();
    const choice = byId('instances');
    choice.replaceChildren(
      ...state.instances.map(({ id, name }) => element('option', { value: id, textContent: name })),
    );
    choice.hidden = state.instances.length < 2;
    await chooseInstance(state.instances[0]);
    followEvents();
    await answerInvitation(chooseInstance);
  });
}

byId('instances').addEventListener('change', (event) => {
  void attempt(() => chooseInstance(state.instances.find(({ id }) => id === event.target.value)));
});

async function chooseInstance(instance) {
  state.instance = instance ?? null;
  byId('instances').value = instance?.id ?? '';
  closeChat();
  await loadChats(open);
}

const open = (jid) => attempt(() => openChat(jid));

byId('back').addEventListener('click', () => {
  const left = state.chat?.jid;
  closeChat();
  showList();
  [...byId('chats').querySelectorAll('button')].find((button) => button.dataset.jid === left)?.focus();
});

function followEvents() {
  feed?.abort();
  feed = new AbortController();
  void connection.follow({
    signal: feed.signal,
    onOpen: () => {
      showConnection('live', 'Live');
      // Also after a break: the feed resumes, but a longer absence may be more than it remembers.
      void attempt(async () => {
        await loadChats();
        await refreshConversation();
      });
    },
    onLost: () => showConnection('lost', 'Connection lost, trying again…'),
    onSignedOut: () => askForKey('This key does not open the inbox any more.'),
    onEvent: (name, { instanceId, envelope }) => {
      if (instanceId === state.instance?.id) {
        void attempt(() => handleEvent(name, envelope.data));
      }
    },
  });
}

void begin({ onSignedIn: openInbox, onSignedOut: () => feed?.abort() });
