/**
 * The other side of a loopback chat, played in the voice inbox. For the network's people that is
 * what they do with the instance's messages; for another instance, which has an inbox of its own,
 * it is what this instance does with the messages it received.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Instance } from 'soundpost-chat/instances';
import { type LoggedMessage, type MessageLog, plainContext } from 'soundpost-chat/message-log';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { OtherSide, Persona, Presence, TransportReports } from 'soundpost-chat/transport';
import type { MessageContent } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { MessageStatus } from 'soundpost-contract/job';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readText, withEdition } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import { type Directory, digitsOf, isGroupJid, personJid } from './directory.ts';
import type { Groups } from './groups.ts';
import type { Relay } from './relay.ts';

/** The inbox page shows no more. */
const RECENT_MESSAGES = 200;

interface PeopleSideOptions {
  readonly instance: Instance;
  /** The instance's own number. */
  readonly digits: string;
  readonly directory: Directory;
  readonly groups: Groups;
  readonly relay: Relay;
  readonly calls: Calls;
  readonly log: MessageLog;
  readonly reports: TransportReports;
}

export class PeopleSide implements OtherSide {
  readonly #options: PeopleSideOptions;

  constructor(options: PeopleSideOptions) {
    this.#options = options;
  }

  async opened(chatJid: string): Promise<void> {
    const { log, instance } = this.#options;
    await log.markRead(instance.id, chatJid);
    for (const message of await log.messages(instance.id, chatJid, RECENT_MESSAGES)) {
      await this.#report(message, 'READ');
    }
  }

  async played(chatJid: string, messageId: string): Promise<void> {
    const { log, instance } = this.#options;
    const message = await log.find(instance.id, messageId);
    if (message !== undefined && message.key.remoteJid === chatJid) {
      await this.#report(message, 'PLAYED');
    }
  }

  async people(chatJid: string): Promise<Persona[]> {
    const { directory, groups, digits } = this.#options;
    const group = isGroupJid(chatJid) ? await groups.find(digitsOf(chatJid)) : undefined;
    const candidates = group?.participants.map((participant) => participant.digits) ?? [digitsOf(chatJid)];
    const found = await Promise.all(
      candidates.map(async (candidate) => {
        const member = await directory.member(candidate);
        return member?.instanceId === null
          ? [
              {
                jid: personJid(candidate),
                name: member.name,
                hasBlocked: await directory.hasBlocked(candidate, digits),
              },
            ]
          : [];
      }),
    );
    return found.flat();
  }

  async reply(chatJid: string, jid: string, content: MessageContent): Promise<{ delivered: boolean }> {
    const { directory, relay, digits } = this.#options;
    const person = await this.#person(chatJid, jid);
    const isGroup = isGroupJid(chatJid);
    if (!isGroup && (await directory.apart(digits, digitsOf(person.jid)))) {
      return { delivered: false };
    }
    await relay.accept({
      messageId: randomBytes(16).toString('hex').toUpperCase(),
      from: { instanceId: null, digits: digitsOf(person.jid), name: person.name },
      to: { digits: isGroup ? digitsOf(chatJid) : digits, isGroup },
      timestampSeconds: Math.floor(Date.now() / 1000),
      content,
      context: plainContext,
    });
    return { delivered: true };
  }

  async typing(chatJid: string, jid: string, presence: Presence): Promise<void> {
    const { directory, reports, instance, digits } = this.#options;
    const person = await this.#person(chatJid, jid);
    if (isGroupJid(chatJid) || !(await directory.apart(digits, digitsOf(person.jid)))) {
      await reports.presenceChanged(instance.id, chatJid, presence, person.jid);
    }
  }

  async call(jid: string): Promise<{ callId: string }> {
    const { directory, calls, reports, instance, digits } = this.#options;
    const person = await this.#person(jid, jid);
    const timestampSeconds = Math.floor(Date.now() / 1000);
    const callId = await calls.begin({ fromJid: person.jid, instanceId: instance.id, timestampSeconds });
    // To a blocked caller it seems to ring.
    if (!(await directory.apart(digits, digitsOf(person.jid)))) {
      await reports.callChanged(instance.id, {
        callId,
        fromJid: person.jid,
        isVideo: false,
        timestampSeconds,
        status: 'offer',
      });
    }
    return { callId };
  }

  async hangUp(callId: string): Promise<void> {
    const { calls, reports, instance } = this.#options;
    const call = await calls.end(callId);
    if (call?.instanceId === instance.id) {
      const { fromJid, timestampSeconds } = call;
      await reports.callChanged(instance.id, {
        callId,
        fromJid,
        isVideo: false,
        timestampSeconds,
        status: 'terminate',
      });
    }
  }

  async setBlocked(jid: string, blocked: boolean): Promise<void> {
    const { directory, digits } = this.#options;
    const person = await this.#person(jid, jid);
    await directory.setBlocked(digitsOf(person.jid), digits, blocked);
  }

  /** Throws unknown_recipient for someone not played in this chat. */
  async #person(chatJid: string, jid: string): Promise<Persona> {
    const person = (await this.people(chatJid)).find((candidate) => candidate.jid === jid);
    if (person === undefined) {
      throw new GatewayError('unknown_recipient', 'as: no person in this chat has this JID');
    }
    return person;
  }

  async #report(message: LoggedMessage, status: MessageStatus): Promise<void> {
    const { directory, instance, reports } = this.#options;
    const { key } = message;
    if (key.fromMe) {
      const peer = await directory.member(digitsOf(key.remoteJid));
      if (!peer?.instanceId) {
        await reports.statusChanged(instance.id, key.id, status);
      }
      return;
    }
    await reports.statusChanged(instance.id, key.id, status);
    const author = await directory.member(digitsOf(message.authorJid ?? key.remoteJid));
    if (author?.instanceId && !isGroupJid(key.remoteJid)) {
      await reports.statusChanged(author.instanceId, key.id, status);
    }
  }
}

// Calls on the loopback network. Nobody can answer them: they exist for rejectCall and msgCall.

/** How long a call rings. */
const RINGS_SECONDS = 60;
const callKey = (callId: string): string => gatewayKey('loopback', 'call', callId);

const Call = z.object({ fromJid: z.string(), instanceId: z.string(), timestampSeconds: z.int() });
type Call = z.infer<typeof Call>;

export class Calls {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async begin(call: Call): Promise<string> {
    const callId = randomUUID();
    await this.#redis.set(callKey(callId), JSON.stringify(withEdition(call)), 'EX', RINGS_SECONDS);
    return callId;
  }

  /** The call, if it is still ringing. */
  async end(callId: string): Promise<Call | undefined> {
    const stored = await this.#redis.getdel(callKey(callId));
    return stored === null ? undefined : readText(Call, stored);
  }
}
