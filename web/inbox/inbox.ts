/** The voice inbox: signs in, chooses an instance, and keeps everything that it shows live. */
import '../shared/foundation.css';
import './style/base.css';
import './style/sign-in.css';
import './style/sidebar.css';
import './style/conversation.css';
import './style/messages.css';
import './style/composer.css';
import type { InboxInstance } from 'soundpost-contract/inbox';
import { focusOn, loadChats, showList } from './chats.ts';
import * as connection from './connection.ts';
import { closeChat, openChat, refreshConversation } from './conversation.ts';
import { element } from './elements.ts';
import { answerInvitation } from './invitation.ts';
import { handleEvent } from './live.ts';
import { askForKey, attempt, begin, showConnection, showInbox, showLost } from './sign-in.ts';
import { byId, state } from './state.ts';

const choice = byId('instances', HTMLSelectElement);

/** Ends what was begun for whoever has signed in. */
let signedIn = new AbortController();
/** Whether events are coming. */
let isLive = false;

function openInbox(): Promise<void> {
  signedIn.abort();
  signedIn = new AbortController();
  isLive = false;
  const { signal } = signedIn;
  return attempt(async () => {
    showInstances(await patiently(() => connection.get<InboxInstance[]>('instances')));
    showInbox();
    followEvents(signal);
    await chooseInstance(state.instances[0]);
    await answerInvitation(chooseInstance);
  });
}

/** Nothing of theirs stays on the page. */
function forget(): void {
  signedIn.abort();
  showInstances([]);
  void attempt(chooseInstance);
}

function showInstances(instances: readonly InboxInstance[]): void {
  state.instances = instances;
  choice.replaceChildren(
    ...instances.map(({ id, name }) => element('option', { value: id, textContent: name })),
  );
  choice.hidden = instances.length < 2;
}

choice.addEventListener('change', () => {
  void attempt(() => chooseInstance(state.instances.find(({ id }) => id === choice.value)));
});

async function chooseInstance(instance?: InboxInstance): Promise<void> {
  state.instance = instance ?? null;
  choice.value = instance?.id ?? '';
  closeChat();
  await patiently(() => loadChats(open));
}

const open = (jid: string): void => void attempt(() => openChat(jid));

byId('back').addEventListener('click', () => {
  const left = state.chat?.jid;
  closeChat();
  showList();
  if (left !== undefined) {
    focusOn(left);
  }
});

function followEvents(signal: AbortSignal): void {
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
      showConnection('lost', 'Connection lost, reconnecting…');
    },
    onSignedOut: () => askForKey('This key no longer opens the inbox.'),
    onEvent: ({ instanceId, envelope }) => {
      if (instanceId === state.instance?.id) {
        void attempt(() => handleEvent(envelope));
      }
    },
  });
}

/** Asks the gateway until it answers, and says so meanwhile. */
async function patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  const answer = await connection.untilAnswered(ask, { signal: signedIn.signal, onLost: showLost });
  if (isLive) {
    showConnection('live', 'Live');
  }
  return answer;
}

byId('not-started').remove();
void begin({ onSignedIn: openInbox, onSignedOut: forget });
