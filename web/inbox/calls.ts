/** A call that rings: from the person who is played to the instance, until one of them ends it. */
import type { GatewayEventData } from 'soundpost-contract/gateway-events';
import type { CallAnswer, InboxInstance, InboxPerson } from 'soundpost-contract/inbox';
import * as connection from './connection.ts';
import { attempt } from './sign-in.ts';
import { announce, byId, state } from './state.ts';

type CallStatus = GatewayEventData['call']['status'];

interface Ringing {
  readonly instance: InboxInstance;
  readonly persona: InboxPerson;
  /** Null until the gateway has answered. */
  callId: string | null;
}

/** How long the outcome of a call stays to be read. */
const SHOWN_MS = 6000;

let ringing: Ringing | null = null;
/** Calls that ended before their id was known here: the event may overtake the answer. */
const ended = new Map<string, CallStatus>();
let hides: ReturnType<typeof setTimeout> | undefined;

export async function beginCall(instance: InboxInstance, persona: InboxPerson): Promise<void> {
  if (ringing !== null) {
    return;
  }
  show(`${persona.name} is calling ${instance.name}…`, true);
  const call: Ringing = { instance, persona, callId: null };
  ringing = call;
  const { callId } = await connection.ask<CallAnswer>(`instances/${instance.id}/calls`, { as: persona.jid });
  if (ringing !== call) {
    return;
  }
  call.callId = callId;
  const status = ended.get(callId);
  if (status !== undefined) {
    finish(call, status);
  }
}

export function callChanged({ id, status }: GatewayEventData['call']): void {
  if (status === 'offer') {
    return;
  }
  if (ringing?.callId === id) {
    finish(ringing, status);
  } else if (ringing?.callId === null) {
    ended.set(id, status);
  }
}

/** Hangs up, if something rings. */
export function endCall(): void {
  if (ringing === null) {
    return;
  }
  const { instance, callId } = ringing;
  if (callId !== null) {
    void attempt(() => connection.remove(`instances/${instance.id}/calls/${callId}`));
  }
  finish(ringing, 'terminate');
}

function finish({ instance, persona }: Ringing, status: CallStatus): void {
  ringing = null;
  ended.clear();
  const outcome = status === 'reject' ? `${instance.name} rejected the call` : `${persona.name} hung up`;
  show(outcome, false);
  hides = setTimeout(() => {
    byId('call-banner').hidden = true;
  }, SHOWN_MS);
}

function show(text: string, rings: boolean): void {
  clearTimeout(hides);
  byId('call-text').textContent = text;
  byId('hang-up').hidden = !rings;
  byId('call-banner').hidden = state.chat === null;
  byId('call-banner').classList.toggle('rings', rings);
  announce(text);
}

byId('hang-up').addEventListener('click', endCall);
