// A call that rings: from the person who is played to the instance, until one of them ends it.
import * as connection from './connection.js';
import { attempt } from './sign-in.js';
import { announce, byId, state } from './state.js';

/** How long the outcome of a call stays to be read. */
const SHOWN_MS = 6000;

/** The call that rings, or null. */
let ringing = null;
/** Calls that ended before their id was known here: the event may overtake the answer. */
const ended = new Map();
let hides = 0;

export async function beginCall(instance, persona) {
  if (ringing !== null) {
    return;
  }
  show(`${persona.name} is calling ${instance.name}…`, true);
  ringing = { instance, persona, callId: null };
  const { callId } = await connection.post(`instances/${instance.id}/calls`, { as: persona.jid });
  if (ringing === null) {
    return;
  }
  ringing.callId = callId;
  const status = ended.get(callId);
  if (status !== undefined) {
    finish(status);
  }
}

/** @param data of the event `call` */
export function callChanged({ id, status }) {
  if (status === 'offer') {
    return;
  }
  if (ringing?.callId === id) {
    finish(status);
  } else if (ringing?.callId === null) {
    ended.set(id, status);
  }
}

/** Hangs up, if something rings. */
export function endCall() {
  if (ringing === null) {
    return;
  }
  const { instance, callId } = ringing;
  if (callId !== null) {
    void attempt(() => connection.remove(`instances/${instance.id}/calls/${callId}`));
  }
  finish('terminate');
}

function finish(status) {
  const { instance, persona } = ringing;
  ringing = null;
  ended.clear();
  const outcome = status === 'reject' ? `${instance.name} rejected the call` : `${persona.name} hung up`;
  show(outcome, false);
  hides = setTimeout(() => {
    byId('call-banner').hidden = true;
  }, SHOWN_MS);
}

function show(text, rings) {
  clearTimeout(hides);
  byId('call-text').textContent = text;
  byId('hang-up').hidden = !rings;
  byId('call-banner').hidden = state.chat === null;
  byId('call-banner').classList.toggle('rings', rings);
  announce(text);
}

byId('hang-up').addEventListener('click', endCall);
