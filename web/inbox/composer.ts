/** Replying in the name of a person: a text, or a recording of the microphone. Others see that something is written. */
import type { InboxInstance, ReplyAnswer } from 'soundpost-contract/inbox';
import * as connection from './connection.ts';
import { clock } from './elements.ts';
import { canRecord, type Recording, record } from './recorder.ts';
import { attempt } from './sign-in.ts';
import { byId, chatPath, openedChat, state } from './state.ts';

const networks: Readonly<Record<InboxInstance['transport'], string>> = {
  loopback: 'the loopback network',
  xmpp: 'XMPP',
  telegram: 'Telegram',
  'whatsapp-cloud': 'WhatsApp',
  whatsapp: 'WhatsApp',
};
/** Who has written nothing for so long has stopped. */
const PAUSE_AFTER_MS = 4000;

type Doing = 'composing' | 'recording';

interface Typing {
  /** Path of the chat in which it is done. */
  readonly path: string;
  /** JID of who does it. */
  readonly as: string;
  readonly presence: Doing;
  readonly timer: ReturnType<typeof setTimeout> | undefined;
}

const composer = byId('composer', HTMLFormElement);
const reply = byId('reply', HTMLTextAreaElement);

let typing: Typing | null = null;
let recording: Recording | null = null;

export function openComposer({ readOnly, transport }: InboxInstance): void {
  composer.hidden = state.persona === null;
  byId('read-only').hidden = state.persona !== null;
  byId('read-only').textContent = readOnly
    ? `This chat is on ${networks[transport]}: you can only listen here.`
    : 'The other side of this chat is an instance with its own inbox.';
  byId('record').hidden = !canRecord();
  byId('reply-fault').textContent = '';
  fitReply();
}

export function closeComposer(): void {
  stopTyping();
  recording?.cancel();
  reply.value = '';
  composer.hidden = true;
  byId('read-only').hidden = true;
}

// --- writing ---

composer.addEventListener('submit', (event) => {
  event.preventDefault();
  const text = reply.value.trim();
  const open = openedChat();
  if (text === '' || open === null) {
    return;
  }
  reply.value = '';
  fitReply();
  stopTyping();
  void attempt(() => deliver((as) => connection.ask<ReplyAnswer>(`${chatPath(open)}/replies`, { as, text })));
});

reply.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    composer.requestSubmit();
  }
});

reply.addEventListener('input', () => {
  fitReply();
  if (reply.value.trim() === '') {
    stopTyping();
  } else {
    startTyping('composing');
  }
});
reply.addEventListener('blur', stopTyping);

/** As high as its text, within the style's limits; and a microphone where there is no text. */
function fitReply(): void {
  reply.style.blockSize = 'auto';
  reply.style.blockSize = `${reply.scrollHeight + 2}px`;
  const empty = reply.value.trim() === '';
  byId('send').hidden = empty && canRecord();
  byId('record').hidden = !empty || !canRecord();
}

async function deliver(post: (as: string) => Promise<ReplyAnswer>): Promise<void> {
  const { persona, instance } = state;
  if (persona === null || instance === null) {
    return;
  }
  byId('reply-fault').textContent = '';
  const { delivered } = await post(persona.jid);
  if (!delivered) {
    byId('reply-fault').textContent = persona.hasBlocked
      ? `Not delivered: ${persona.name} has blocked ${instance.name}.`
      : `Not delivered: ${instance.name} has blocked ${persona.name}.`;
  }
}

// --- that something is written ---

function startTyping(presence: Doing): void {
  const { persona } = state;
  const open = openedChat();
  if (persona === null || open === null) {
    return;
  }
  clearTimeout(typing?.timer);
  const before = typing;
  const timer = presence === 'composing' ? setTimeout(stopTyping, PAUSE_AFTER_MS) : undefined;
  typing = { path: chatPath(open), as: persona.jid, presence, timer };
  if (before?.presence !== presence || before.as !== persona.jid) {
    tell(typing, presence);
  }
}

function stopTyping(): void {
  if (typing !== null) {
    clearTimeout(typing.timer);
    tell(typing, 'paused');
    typing = null;
  }
}

function tell({ path, as }: Typing, presence: Doing | 'paused'): void {
  void attempt(() => connection.tell(`${path}/typing`, { as, presence }));
}

// --- speaking ---

byId('record').addEventListener('click', async () => {
  const open = openedChat();
  if (open === null) {
    return;
  }
  byId('reply-fault').textContent = '';
  try {
    recording = await record((seconds) => {
      byId('recording-time').textContent = clock(seconds);
    });
  } catch {
    byId('reply-fault').textContent = 'Cannot use the microphone.';
    return;
  }
  startTyping('recording');
  composer.classList.add('recording');
  byId('stop').focus();
  const sound = await recording.finished;
  recording = null;
  composer.classList.remove('recording');
  stopTyping();
  if (sound !== null && state.chat === open.chat) {
    const replies = `${chatPath(open)}/replies`;
    void attempt(() =>
      deliver((as) => connection.askWithSound(`${replies}?as=${encodeURIComponent(as)}`, sound)),
    );
    byId('record').focus();
  }
});

byId('stop').addEventListener('click', () => recording?.finish());
byId('discard').addEventListener('click', () => recording?.cancel());
composer.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    recording?.cancel();
  }
});
