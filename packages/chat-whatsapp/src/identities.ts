/**
 * A person on WhatsApp has a phone number and a LID (`…@lid`), an id that hides the number; of some
 * people only the LID is known. Callers see the number where it is known. WhatsApp gets the LID
 * where it is known: it refuses messages to the number of such a person with 463
 * (Baileys#2683, #2698). The pairs are in Baileys' own mapping, which is part of the session.
 */
import type { Line } from './connection.ts';
import { bareJid, isLid, isNumberJid, LID_SUFFIX, personJid, userOf } from './phone-jid.ts';
import type { SessionStore } from './session-store.ts';

type Jid = string | null | undefined;

export class Identities {
  readonly #store: Pick<SessionStore, 'mapped'>;

  constructor(store: Pick<SessionStore, 'mapped'>) {
    this.#store = store;
  }

  /** The JID that callers see. @param other the person's other address, if it came along */
  async shown(jid: Jid, other?: Jid): Promise<string | undefined> {
    if (!jid) {
      return undefined;
    }
    const known = [jid, other].find((one) => one && isNumberJid(bareJid(one)));
    return known ? bareJid(known) : (await this.shownAll([jid])).get(jid);
  }

  /** As {@link shown}, with one query for all. */
  async shownAll(jids: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    const all = [...new Set(jids)];
    const lids = all.filter((jid) => isLid(bareJid(jid)));
    const numbers = await this.#store.mapped(lids.map((lid) => `${userOf(lid)}_reverse`));
    const known = new Map(lids.map((lid, index) => [lid, numbers[index]]));
    return new Map(
      all.map((jid) => {
        const number = known.get(jid);
        return [jid, number === undefined ? bareJid(jid) : personJid(number)];
      }),
    );
  }

  /** The JID that WhatsApp gets. */
  async addressed(jid: string): Promise<string> {
    if (!isNumberJid(jid)) {
      return jid;
    }
    const [lid] = await this.#store.mapped([userOf(jid)]);
    return lid === undefined ? jid : `${lid}@${LID_SUFFIX}`;
  }

  /** Both JIDs of a person as far as they are known, the shown one first. */
  async addressesOf(jid: string): Promise<string[]> {
    const shown = (await this.shown(jid)) ?? jid;
    return [...new Set([shown, await this.addressed(shown)])];
  }

  /** Keeps those pairs that are a number and a LID. */
  async learn({ socket }: Line, pairs: readonly (readonly [Jid, Jid])[]): Promise<void> {
    const known = pairs.flatMap((pair) => {
      const jids = pair.flatMap((jid) => (jid ? bareJid(jid) : []));
      const [lid, pn] = [jids.find(isLid), jids.find(isNumberJid)];
      return lid === undefined || pn === undefined ? [] : { lid, pn };
    });
    if (known.length > 0) {
      await socket.signalRepository.lidMapping.storeLIDPNMappings(known);
    }
  }
}
