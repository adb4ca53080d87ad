/** The account's roster (RFC 6121 §2), block list (XEP-0191) and contact names (XEP-0054). */
import { attribute, childText, type Element, xml } from './element.ts';
import { isNothingThere } from './failure.ts';
import { bareOf, localOf } from './jid.ts';
import { ns } from './namespaces.ts';
import type { Stream, StreamListener } from './stream.ts';

interface RosterEntry {
  readonly jid: string;
  /** As set by the account's owner. */
  readonly name: string | undefined;
  /** Whether they see the account's presence. */
  readonly seesPresence: boolean;
}

const CARD_TIMEOUT_MS = 5_000;
/** Cards requested at the same time. */
const CARDS_AT_ONCE = 8;
const MAX_CARDS = 10_000;

export class AddressBook {
  readonly #stream: Stream;
  readonly #ownJid: string;
  readonly #entries = new Map<string, RosterEntry>();
  readonly #cardNames = new Map<string, string | undefined>();

  constructor(stream: Stream, ownJid: string) {
    this.#stream = stream;
    this.#ownJid = ownJid;
  }

  /** Call this first in every session: it makes the server report changes (RFC 6121 §2.1.6). */
  async load(): Promise<void> {
    const answer = await this.#stream.query('get', xml('query', { xmlns: ns.roster }));
    this.#entries.clear();
    this.#take(answer.getChild('query', ns.roster));
  }

  /** Applies a change sent by the account's own server. @returns whether the query was handled */
  changed({ type, from, child }: Parameters<StreamListener['query']>[0]): boolean {
    if (type !== 'set' || (from !== undefined && bareOf(from) !== this.#ownJid)) {
      return false;
    }
    if (child.is('query', ns.roster)) {
      this.#take(child);
      return true;
    }
    // The block list is fetched on demand.
    return child.getNS() === ns.blocking;
  }

  has(jid: string): boolean {
    return this.#entries.has(jid);
  }

  entries(): RosterEntry[] {
    return [...this.#entries.values()];
  }

  /** The known name, without a request. */
  knownName(jid: string): string {
    return this.#entries.get(jid)?.name ?? this.#cardNames.get(jid) ?? (localOf(jid) || jid);
  }

  /** The names by JID; for those without one in the roster, the one on their card. */
  async names(jids: readonly string[]): Promise<Map<string, string>> {
    const unknown = jids.filter(
      (jid) => this.#entries.get(jid)?.name === undefined && !this.#cardNames.has(jid),
    );
    for (let start = 0; start < unknown.length; start += CARDS_AT_ONCE) {
      await Promise.all(unknown.slice(start, start + CARDS_AT_ONCE).map((jid) => this.#askCard(jid)));
    }
    return new Map(jids.map((jid) => [jid, this.knownName(jid)]));
  }

  /** Empty where the server has no block list. */
  async blocked(): Promise<Set<string>> {
    try {
      const answer = await this.#stream.query('get', xml('blocklist', { xmlns: ns.blocking }));
      const items = answer.getChild('blocklist', ns.blocking)?.getChildren('item') ?? [];
      return new Set(items.map(({ attrs }) => bareOf(String(attrs.jid))));
    } catch (error) {
      if (isNothingThere(error)) {
        return new Set();
      }
      throw error;
    }
  }

  async setBlocked(jid: string, blocked: boolean): Promise<void> {
    await this.#stream.query(
      'set',
      xml(blocked ? 'block' : 'unblock', { xmlns: ns.blocking }, xml('item', { jid })),
    );
  }

  #take(query: Element | undefined): void {
    for (const item of query?.getChildren('item') ?? []) {
      const jid = bareOf(String(item.attrs.jid));
      const subscription = attribute(item, 'subscription');
      if (subscription === 'remove') {
        this.#entries.delete(jid);
        continue;
      }
      const seesPresence = subscription === 'from' || subscription === 'both';
      this.#entries.set(jid, { jid, name: attribute(item, 'name'), seesPresence });
    }
  }

  async #askCard(jid: string): Promise<void> {
    if (this.#cardNames.size >= MAX_CARDS) {
      this.#cardNames.clear();
    }
    try {
      const answer = await this.#stream.query('get', xml('vCard', { xmlns: ns.vcard }), {
        to: jid,
        timeoutMs: CARD_TIMEOUT_MS,
      });
      const card = answer.getChild('vCard', ns.vcard);
      this.#cardNames.set(jid, childText(card, 'FN') ?? childText(card, 'NICKNAME'));
    } catch {
      // No card and no answer both mean that there is no name.
      this.#cardNames.set(jid, undefined);
    }
  }
}
