/** Incoming calls and how they end (XEP-0353). */
import type { IncomingCall, TransportReports } from 'soundpost-chat/transport';
import { attribute, childrenIn, type Element } from './element.ts';
import { bareOf } from './jid.ts';
import { ns } from './namespaces.ts';

/** Further calls that ring at the same time are ignored. */
const MAX_CALLS = 1_000;

const ends: Readonly<Record<string, IncomingCall['status']>> = {
  retract: 'terminate',
  finish: 'terminate',
  accept: 'accept',
  proceed: 'accept',
  reject: 'reject',
};

export class Calls {
  readonly #instanceId: string;
  readonly #reports: TransportReports;
  readonly #ringing = new Map<string, IncomingCall & { readonly device: string }>();

  constructor(instanceId: string, reports: TransportReports) {
    this.#instanceId = instanceId;
    this.#reports = reports;
  }

  /** The caller's device; undefined for a call that is over or unknown. */
  deviceOf(callId: string): string | undefined {
    return this.#ringing.get(callId)?.device;
  }

  /** @param fromMe done by another device of the account */
  async notice(stanza: Element, from: string, fromMe: boolean): Promise<void> {
    const sign = childrenIn(stanza, ns.call)[0];
    const callId = attribute(sign, 'id');
    if (sign === undefined || callId === undefined) {
      return;
    }
    if (sign.is('propose')) {
      if (!fromMe) await this.#offered(sign, callId, from);
      return;
    }
    const status = ends[sign.getName()];
    const call = this.#ringing.get(callId);
    // Only the two sides of a call can end it.
    if (status !== undefined && call !== undefined && (fromMe || bareOf(from) === call.fromJid)) {
      this.#ringing.delete(callId);
      const { device: _device, ...ringing } = call;
      await this.#reports.callChanged(this.#instanceId, { ...ringing, status });
    }
  }

  async #offered(sign: Element, callId: string, from: string): Promise<void> {
    if (this.#ringing.size >= MAX_CALLS || this.#ringing.has(callId)) {
      return;
    }
    const call: IncomingCall = {
      callId,
      fromJid: bareOf(from),
      isVideo: sign.getChildElements().some(({ attrs }) => attrs.media === 'video'),
      timestampSeconds: Math.floor(Date.now() / 1000),
      status: 'offer',
    };
    this.#ringing.set(callId, { ...call, device: from });
    await this.#reports.callChanged(this.#instanceId, call);
  }
}
