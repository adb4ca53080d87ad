// The voice inbox: signs in, chooses an instance, and keeps everything that it shows live.
import { loadChats, showList } from './chats.js';
import * as connection from './connection.js';
import { closeChat, openChat, refreshConversation } from './conversation.js';
import { answerInvitation } from './invitation.js';
import { handleEvent } from './live.js';
import { element } from './shared/elements.js';
import { askForKey, attempt, begin, showConnection, showInbox, showLost } from './sign-in.js';
import { byId, state } from './state.js';

/** Ends what was begun for whoever has signed in. */
let signedIn = new AbortController();
/** Whether events are coming. */
let isLive = false;

function openInbox() {
  signedIn.abort();
  signedIn = new AbortController();
  isLive = false;
  const { signal } = signedIn;
  return attempt(async () => {
    showInstances(await patiently(() => connection.get('instances')));
    showInbox();
    followEvents(signal);
    await chooseInstance(state.instances[0]);
    await answerInvitation(chooseInstance);
  });
}

/** Nothing of theirs stays on the page. */
function forget() {
  signedIn.abort();
  showInstances([]);
  void attempt(chooseInstance);
}

function showInstances(instances) {
  state.instances = instances;
  const choice = byId('instances');
  choice.replaceChildren(
    ...instances.map(({ id, name }) => element('option', { value: id, textContent: name })),
  );
  choice.hidden = instances.length < 2;
}

byId('instances').addEventListener('change', (event) => {
  void attempt(() => chooseInstance(state.instances.find(({ id }) => id === event.target.value)));
});

async function chooseInstance(instance) {
  state.instance = instance ?? null;
  byId('instances').value = instance?.id ?? '';
  closeChat();
  await patiently(() => loadChats(open));
}

const open = (jid) => attempt(() => openChat(jid));

byId('back').addEventListener('click', () => {
  const left = state.chat?.jid;
  closeChat();
  showList();
  [...byId('chats').querySelectorAll('button')].find((button) => button.dataset.jid === left)?.focus();
});

/** @param {AbortSignal} signal */
function followEvents(signal) {
  void connection.follow({
    signal,
    onOpen: () => {
      isLive = true;
      showConnection('live', 'Live');
      // Also after a break: the feed resumes, but a longer absence may be more than it remembers.
      void attempt(async () => {
        await patiently(() => loadChats());
        await patiently(refreshConversation);
      });
    },
    onLost: () => {
      isLive = false;
      showConnection('lost', 'Connection lost, trying again…');
    },
    onSignedOut: () => askForKey('This key does not open the inbox any more.'),
    onEvent: (name, { instanceId, envelope }) => {
      if (instanceId === state.instance?.id) {
        void attempt(() => handleEvent(name, envelope.data));
      }
    },
  });
}

/**
 * Asks the gateway until it answers, and says so meanwhile.
 * @template T
 * @param {() => Promise<T>} ask
 */
async function patiently(ask) {
  const answer = await connection.untilAnswered(ask, { signal: signedIn.signal, onLost: showLost });
  if (isLive) {
    showConnection('live', 'Live');
  }
  return answer;
}

void begin({ onSignedIn: openInbox, onSignedOut: forget });
