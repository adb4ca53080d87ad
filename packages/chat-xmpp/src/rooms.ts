/** The rooms that the instance has joined (XEP-0045), and its requests to them. */
import { randomBytes } from 'node:crypto';
import { within } from 'soundpost-base/deadline';
import type { Participant } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { attribute, type Element, readForm, submission, xml } from './element.ts';
import { conditionOf, refusal } from './failure.ts';
import { bareOf, resourceOf } from './jid.ts';
import { ns } from './namespaces.ts';
import { hasStatus, Room } from './room.ts';
import type { Stream } from './stream.ts';

interface Invitation {
  readonly inviteUrl: string;
  readonly inviteCode: string;
}

const JOIN_TIMEOUT_MS = 10_000;
const MAX_NICK_TRIES = 4;
/** Missed messages that a room sends on entering. */
const MAX_MISSED = '200';
/** 144 bits: anyone who guesses the code can enter. */
const CODE_BYTES = 18;

const SECRET_FIELD = 'muc#roomconfig_roomsecret';
const PROTECTED_FIELD = 'muc#roomconfig_passwordprotectedroom';

/** Affiliations that make someone a participant, with the contract's name for each. */
const participantLevels = [
  { affiliation: 'owner', admin: 'superadmin' },
  { affiliation: 'admin', admin: 'admin' },
  { affiliation: 'member', admin: null },
] as const;

interface Entry {
  readonly nick: string;
  readonly password?: string | undefined;
  /** The room sends messages newer than this on entering, ms since 1970; undefined: none. */
  readonly sinceMs?: number | undefined;
}

interface Entering {
  readonly room: Room;
  readonly resolve: () => void;
  readonly reject: (condition: string) => void;
}

export class Rooms {
  readonly #stream: Stream;
  readonly #joined = new Map<string, Room>();
  readonly #entering = new Map<string, Entering>();
  readonly #joining = new Map<string, Promise<Room>>();

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  /** A new session is in no room. */
  forget(): void {
    this.#joined.clear();
  }

  joined(room: string): Room | undefined {
    return this.#joined.get(room);
  }

  all(): Room[] {
    return [...this.#joined.values()];
  }

  /** Enters the room unless already in it. @throws GatewayError group_not_found, network_refused */
  join(room: string, entry: Entry): Promise<Room> {
    const known = this.#joined.get(room);
    if (known !== undefined) return Promise.resolve(known);
    const joining = this.#joining.get(room) ?? this.#enter(room, entry);
    this.#joining.set(room, joining);
    joining.catch(() => undefined).finally(() => this.#joining.delete(room));
    return joining;
  }

  /** @returns the presence's room; undefined if the instance is neither in it nor entering it */
  presence(stanza: Element): Room | undefined {
    const from = attribute(stanza, 'from') ?? '';
    const jid = bareOf(from);
    const entering = this.#entering.get(jid);
    const room = entering?.room ?? this.#joined.get(jid);
    if (room === undefined) return undefined;
    const own = resourceOf(from) === room.nick || hasStatus(stanza, '110');
    if (attribute(stanza, 'type') === 'error') {
      const conditions = stanza.getChild('error')?.getChildElements() ?? [];
      entering?.reject(conditions[0]?.getName() ?? 'undefined-condition');
    } else if (own && attribute(stanza, 'type') === 'unavailable') {
      this.#joined.delete(jid);
    } else if (own && entering !== undefined) {
      // The own presence follows all others and precedes the history (XEP-0045 §7.2.2).
      this.#joined.set(jid, room);
      entering.resolve();
    }
    return room;
  }

  async participants(room: string): Promise<Participant[]> {
    const found = new Map<string, Participant>();
    for (const { affiliation, admin } of participantLevels) {
      for (const jid of await this.#affiliated(room, affiliation)) {
        found.set(jid, { jid, name: this.#joined.get(room)?.nickOf(jid) ?? '', admin });
      }
    }
    for (const { nick, occupant } of this.#joined.get(room)?.occupants() ?? []) {
      const { jid = `${room}/${nick}`, affiliation } = occupant;
      const level = participantLevels.find((candidate) => candidate.affiliation === affiliation);
      if (!found.has(jid)) found.set(jid, { jid, name: nick, admin: level?.admin ?? null });
    }
    return [...found.values()];
  }

  /** Lets someone enter a members-only room; a refusal is ignored. */
  async makeMember(room: string, jid: string): Promise<void> {
    const member = xml('item', { affiliation: 'member', jid });
    await this.#stream
      .query('set', xml('query', { xmlns: ns.mucAdmin }, member), { to: room })
      .catch((error: unknown) => {
        if (conditionOf(error) === undefined) throw error;
      });
  }

  /** @param renew makes a new code even if there is one */
  async invitation(room: string, renew: boolean): Promise<Invitation> {
    const values = await this.#configuration(room);
    const known = values.get(PROTECTED_FIELD)?.[0] === '0' ? '' : (values.get(SECRET_FIELD)?.[0] ?? '');
    if (known !== '' && !renew) return invitation(room, known);
    const code = randomBytes(CODE_BYTES).toString('base64url');
    // Some servers lack the switch beside the secret and may refuse it.
    const on: Record<string, string> = values.has(PROTECTED_FIELD) ? { [PROTECTED_FIELD]: '1' } : {};
    const form = submission(values, { ...on, [SECRET_FIELD]: code });
    await this.#stream
      .query('set', xml('query', { xmlns: ns.mucOwner }, form), { to: room })
      .catch((error: unknown) => {
        throw refusal('groupJid', error);
      });
    return invitation(room, code);
  }

  async #configuration(room: string): Promise<ReturnType<typeof readForm>> {
    const answer = await this.#stream
      .query('get', xml('query', { xmlns: ns.mucOwner }), { to: room })
      .catch((error: unknown) => {
        if (conditionOf(error) === 'forbidden') {
          throw new GatewayError(
            'network_refused',
            'groupJid: only an owner of the group has its invite code',
          );
        }
        throw refusal('groupJid', error, { 'item-not-found': 'group_not_found' });
      });
    return readForm(answer.getChild('query', ns.mucOwner)?.getChild('x', ns.form));
  }

  /** A list that the room does not show counts as empty; its occupants are known anyway. */
  async #affiliated(room: string, affiliation: string): Promise<string[]> {
    try {
      const answer = await this.#stream.query(
        'get',
        xml('query', { xmlns: ns.mucAdmin }, xml('item', { affiliation })),
        { to: room },
      );
      const items = answer.getChild('query', ns.mucAdmin)?.getChildren('item') ?? [];
      return items.map(({ attrs }) => bareOf(String(attrs.jid)));
    } catch (error) {
      if (conditionOf(error) === 'forbidden' || conditionOf(error) === 'not-allowed') return [];
      throw refusal('groupJid', error, { 'item-not-found': 'group_not_found' });
    }
  }

  async #enter(room: string, entry: Entry): Promise<Room> {
    for (let attempt = 1; ; attempt++) {
      const nick = attempt === 1 ? entry.nick : `${entry.nick} ${attempt}`;
      try {
        return await this.#tryToEnter(new Room(room, nick), entry);
      } catch (error) {
        const taken = error instanceof NotEntered && error.condition === 'conflict';
        if (!taken || attempt === MAX_NICK_TRIES) throw entryFailure(error);
      }
    }
  }

  async #tryToEnter(room: Room, { password, sinceMs }: Entry): Promise<Room> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#entering.set(room.jid, {
      room,
      resolve,
      reject: (condition) => reject(new NotEntered(condition)),
    });
    try {
      const secret = password === undefined ? [] : [xml('password', {}, password)];
      const missed = sinceMs === undefined ? {} : { since: new Date(sinceMs).toISOString() };
      const history = xml('history', { maxstanzas: sinceMs === undefined ? '0' : MAX_MISSED, ...missed });
      await this.#stream.send(
        xml('presence', { to: `${room.jid}/${room.nick}` }, xml('x', { xmlns: ns.muc }, history, ...secret)),
      );
      const reason = () => new NotEntered('remote-server-timeout');
      await within(JOIN_TIMEOUT_MS, () => promise, { reason });
      return room;
    } finally {
      this.#entering.delete(room.jid);
    }
  }
}

class NotEntered extends Error {
  readonly condition: string;
  constructor(condition: string) {
    super(`the room refused: ${condition}`);
    this.condition = condition;
  }
}

/** Refusals that mean "not a member": wrong password, no member, banned, no such room. */
const notInIt = new Set(['not-authorized', 'registration-required', 'forbidden', 'item-not-found', 'gone']);

function entryFailure(error: unknown): unknown {
  if (!(error instanceof NotEntered)) return error;
  return notInIt.has(error.condition)
    ? new GatewayError('group_not_found', 'groupJid: the instance may not enter a group with this JID', {
        cause: error,
      })
    : new GatewayError('network_refused', `groupJid: the group refused (${error.condition})`, {
        cause: error,
      });
}

/** XEP-0147 with the registered query `join`, which clients can open. */
function invitation(room: string, code: string): Invitation {
  return { inviteUrl: `xmpp:${room}?join;password=${encodeURIComponent(code)}`, inviteCode: code };
}

/** @returns room and code of an {@link Invitation} address; undefined for any other text */
export function parseInvitation(text: string): { room: string; code: string } | undefined {
  const match = /^xmpp:([^?\s]+)\?join(?:;password=([^;\s]+))?$/.exec(text.trim());
  if (match?.[1] === undefined) return undefined;
  try {
    return { room: bareOf(decodeURIComponent(match[1])), code: decodeURIComponent(match[2] ?? '') };
  } catch {
    return undefined;
  }
}
