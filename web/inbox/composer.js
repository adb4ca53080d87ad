// Replying in the name of a person: a text, or a recording of the microphone. Others see that something is written.
import * as connection from './connection.js';
import { canRecord, record } from './recorder.js';
import { clock } from './shared/elements.js';
import { attempt } from './sign-in.js';
import { byId, chatPath, state } from './state.js';

const networks = { xmpp: 'XMPP', whatsapp: 'WhatsApp' };
/** Who has written nothing for so long has stopped. */
const PAUSE_AFTER_MS = 4000;

let typing = null;
let recording = null;

export function openComposer() {
  const { persona, instance } = state;
  byId('composer').hidden = persona === null;
  byId('read-only').hidden = persona !== null;
  byId('read-only').textContent = instance.readOnly
    ? `This chat is on ${networks[instance.transport] ?? instance.transport}: here you can listen.`
    : 'The other side of this chat is an instance with an inbox of its own.';
  byId('record').hidden = !canRecord();
  byId('reply-fault').textContent = '';
  fitReply();
}

export function closeComposer() {
  stopTyping();
  recording?.cancel();
  byId('reply').value = '';
  byId('composer').hidden = true;
  byId('read-only').hidden = true;
}

// --- writing ---

const reply = byId('reply');

byId('composer').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = reply.value.trim();
  if (text === '') {
    return;
  }
  reply.value = '';
  fitReply();
  stopTyping();
  void attempt(() => deliver((as) => connection.post(`${chatPath()}/replies`, { as, text })));
});

reply.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    byId('composer').requestSubmit();
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
function fitReply() {
  reply.style.blockSize = 'auto';
  reply.style.blockSize = `${reply.scrollHeight + 2}px`;
  const empty = reply.value.trim() === '';
  byId('send').hidden = empty && canRecord();
  byId('record').hidden = !empty || !canRecord();
}

async function deliver(post) {
  const { persona, instance } = state;
  byId('reply-fault').textContent = '';
  const { delivered } = await post(persona.jid);
  if (!delivered) {
    byId('reply-fault').textContent = persona.hasBlocked
      ? `Not delivered: ${persona.name} has blocked ${instance.name}.`
      : `Not delivered: ${instance.name} has blocked ${persona.name}.`;
  }
}

// --- that something is written ---

function startTyping(presence) {
  const { persona } = state;
  clearTimeout(typing?.timer);
  if (typing?.presence !== presence || typing.as !== persona.jid) {
    tell(persona.jid, presence);
  }
  const timer = presence === 'composing' ? setTimeout(stopTyping, PAUSE_AFTER_MS) : 0;
  typing = { as: persona.jid, presence, timer };
}

function stopTyping() {
  if (typing !== null) {
    clearTimeout(typing.timer);
    tell(typing.as, 'paused');
    typing = null;
  }
}

function tell(as, presence) {
  const path = `${chatPath()}/typing`;
  void attempt(() => connection.post(path, { as, presence }));
}

// --- speaking ---

byId('record').addEventListener('click', async () => {
  byId('reply-fault').textContent = '';
  try {
    recording = await record((seconds) => {
      byId('recording-time').textContent = clock(seconds);
    });
  } catch {
    byId('reply-fault').textContent = 'The microphone cannot be used.';
    return;
  }
  startTyping('recording');
  byId('composer').classList.add('recording');
  byId('stop').focus();
  const { chat } = state;
  const sound = await recording.finished;
  recording = null;
  byId('composer').classList.remove('recording');
  stopTyping();
  if (sound !== null && state.chat === chat) {
    void attempt(() =>
      deliver((as) => connection.postSound(`${chatPath(chat)}/replies?as=${encodeURIComponent(as)}`, sound)),
    );
    byId('record').focus();
  }
});

byId('stop').addEventListener('click', () => recording?.finish());
byId('discard').addEventListener('click', () => recording?.cancel());
byId('composer').addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    recording?.cancel();
  }
});
