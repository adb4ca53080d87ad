// Sending a result as a voice message, and how far it has come.
import { once, request } from './connection.js';
import { byId, during, setText } from './page.js';
import { element } from './shared/elements.js';
import { voiceWord } from './words.js';

/** In this tab: whom something was sent to last, and from where. */
const STORE = 'soundpost.console.recipient';
const LOOK_MS = 1500;
/** After so long nobody waits for a tick any more. */
const PATIENCE_MS = 10 * 60 * 1000;

const fault = byId('send-error');

let shown = null;
let looks = 0;
/** What most will want, once it is known which instances the key opens. */
let usual = '';

/** @param job that has its result, or not yet @param {(job: object) => void} onChange called with the job when its message has moved */
export function showSend(job, onChange) {
  byId('job-send').hidden = job.outputFile === null;
  if (job.outputFile === null) {
    return;
  }
  const isNew = shown?.job.jobId !== job.jobId;
  shown = { job, onChange, sinceMs: isNew ? Date.now() : shown.sinceMs };
  if (isNew) {
    const { instance = usual, recipient = '' } = JSON.parse(sessionStorage.getItem(STORE) ?? '{}');
    byId('instance').value = instance;
    byId('recipient').value = recipient;
    fault.textContent = '';
    void offerInstances();
  }
  showState(job.voiceMessage);
}

/** When somebody signs out: another key opens other instances. */
export function forgetSend() {
  usual = '';
  sessionStorage.removeItem(STORE);
}

export function closeSend() {
  clearTimeout(looks);
  shown = null;
}

function showState(voiceMessage) {
  const badge = byId('send-status');
  const word = voiceMessage === undefined ? '' : voiceWord(voiceMessage);
  const isBad = voiceMessage?.status === 'failed' || voiceMessage?.messageStatus === 'ERROR';
  const isGood = voiceMessage?.status === 'sent' && !isBad;
  badge.className = `status ${isBad ? 'status-failed' : isGood ? 'status-completed' : 'status-processing'}`;
  setText(badge, word);
  setText(byId('send-note'), noteOf(voiceMessage));
  clearTimeout(looks);
  const mayMove = voiceMessage !== undefined && !isBad && voiceMessage.messageStatus !== 'PLAYED';
  if (mayMove && Date.now() - shown.sinceMs < PATIENCE_MS) {
    looks = setTimeout(look, LOOK_MS);
  }
}

function noteOf(voiceMessage) {
  if (voiceMessage?.error) {
    return `${voiceMessage.error.message}. See that the instance is connected and the number right, then send it again.`;
  }
  if (voiceMessage?.fitsVoiceBubble === false) {
    return 'It is larger than 512 KiB, so phones may show it as a file. The format Voice keeps below that.';
  }
  return voiceMessage === undefined ? 'Goes through the messaging gateway; its inbox shows it.' : '';
}

async function look() {
  const looked = shown;
  try {
    const job = await request(`v1/jobs/${looked.job.jobId}`);
    if (shown === looked) {
      looked.onChange(job);
    }
  } catch {
    if (shown === looked) {
      looks = setTimeout(look, LOOK_MS * 4);
    }
  }
}

/** A key may name the instances that it opens; `*` names none. */
async function offerInstances() {
  if (usual !== '') {
    return;
  }
  try {
    const { key } = await request('v1/usage');
    const names = key.instances.filter((name) => name !== '*');
    byId('instances').replaceChildren(...names.map((value) => element('option', { value })));
    usual = names[0] ?? 'main';
    byId('instance').value ||= usual;
  } catch {
    // Then it is typed.
  }
}

byId('send-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const { job } = shown;
  const instance = byId('instance').value.trim();
  const recipient = byId('recipient').value.trim();
  void during(event.submitter ?? byId('send-form').querySelector('button'), fault, async () => {
    const { voiceMessage } = await once(`v1/jobs/${job.jobId}/voice-message`, {
      instance,
      number: recipient,
    });
    sessionStorage.setItem(STORE, JSON.stringify({ instance, recipient }));
    if (shown?.job.jobId === job.jobId) {
      shown.sinceMs = Date.now();
      shown.onChange({ ...job, voiceMessage });
    }
  });
});
