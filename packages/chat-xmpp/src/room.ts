/** One room as the instance sees it (XEP-0045): its occupants and their affiliations. */
import { attribute, type Element } from './element.ts';
import { bareOf, resourceOf } from './jid.ts';
import { ns } from './namespaces.ts';

type Affiliation = 'owner' | 'admin' | 'member' | 'none' | 'outcast';

interface Occupant {
  /** Bare; undefined if the room hides it. */
  readonly jid: string | undefined;
  readonly affiliation: Affiliation;
}

interface AffiliationChange {
  readonly jid: string;
  readonly before: Affiliation | undefined;
  readonly after: Affiliation;
}

const affiliations: ReadonlySet<string> = new Set(['owner', 'admin', 'member', 'none', 'outcast']);

export class Room {
  readonly jid: string;
  readonly nick: string;
  readonly #occupants = new Map<string, Occupant>();
  /** By real JID, as far as known. */
  readonly #affiliations = new Map<string, Affiliation>();

  constructor(jid: string, nick: string) {
    this.jid = jid;
    this.nick = nick;
  }

  occupant(nick: string): Occupant | undefined {
    return this.#occupants.get(nick);
  }

  occupants(): { nick: string; occupant: Occupant }[] {
    return [...this.#occupants].map(([nick, occupant]) => ({ nick, occupant }));
  }

  nickOf(jid: string): string | undefined {
    return this.occupants().find(({ occupant }) => occupant.jid === jid)?.nick;
  }

  /** Reads affiliations from a presence or message of the room. @returns the changes */
  observe(stanza: Element): AffiliationChange[] {
    const items = stanza.getChild('x', ns.mucUser)?.getChildren('item') ?? [];
    const nick = resourceOf(attribute(stanza, 'from') ?? '');
    const changes: AffiliationChange[] = [];
    for (const item of items) {
      const said = attribute(item, 'affiliation') ?? '';
      if (!affiliations.has(said)) continue;
      const affiliation = said as Affiliation;
      const jid = attribute(item, 'jid');
      const occupant = { jid: jid && bareOf(jid), affiliation };
      if (stanza.name === 'presence') this.#place(nick, occupant, attribute(stanza, 'type'), item);
      if (occupant.jid !== undefined) {
        const before = this.#affiliations.get(occupant.jid);
        this.#affiliations.set(occupant.jid, affiliation);
        if (before !== affiliation) changes.push({ jid: occupant.jid, before, after: affiliation });
      }
    }
    return changes;
  }

  #place(nick: string, occupant: Occupant, type: string | undefined, item: Element): void {
    if (type === undefined) {
      this.#occupants.set(nick, occupant);
    } else if (type === 'unavailable') {
      this.#occupants.delete(nick);
      // Status 303: the same person continues under another name.
      const renamed = attribute(item, 'nick');
      if (renamed !== undefined) this.#occupants.set(renamed, occupant);
    }
  }
}

export function hasStatus(stanza: Element, code: string): boolean {
  const statuses = stanza.getChild('x', ns.mucUser)?.getChildren('status') ?? [];
  return statuses.some(({ attrs }) => attrs.code === code);
}
