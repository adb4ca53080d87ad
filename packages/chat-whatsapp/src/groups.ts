/** Groups with participants. Frequent queries look like abuse, so answers are cached. */
import type { GroupMetadata } from 'baileys';
import type { Address } from 'soundpost-chat/address';
import type { Line } from './connection.ts';
import type { Identities } from './identities.ts';
import { asked, groupMeanings } from './network-request.ts';
import { suffixes } from './phone-jid.ts';

/** An event may have been missed while the connection was down. */
const KEEP_MS = 10 * 60 * 1000;

interface Known {
  /** Also while the query is running, so that messages sent at once share it. */
  readonly metadata: Promise<GroupMetadata>;
  readonly untilMs: number;
}

export class Groups {
  readonly #identities: Identities;
  readonly #known = new Map<string, Known>();

  constructor(identities: Identities) {
    this.#identities = identities;
  }

  /** Throws group_not_found. */
  get(line: Line, groupJid: string): Promise<GroupMetadata> {
    const known = this.#known.get(groupJid);
    if (known !== undefined && known.untilMs > performance.now()) {
      return known.metadata;
    }
    const metadata = this.#query(line, groupJid);
    const entry = this.#keep(groupJid, metadata);
    metadata.catch(() => {
      if (this.#known.get(groupJid) === entry) this.#known.delete(groupJid);
    });
    return metadata;
  }

  async learn(line: Line, groups: readonly GroupMetadata[]): Promise<void> {
    for (const group of groups) {
      this.#keep(group.id, Promise.resolve(group));
    }
    await this.#learnMembers(line, groups);
  }

  /** What an event says of a group; one without members changes only what is known. */
  async change(line: Line, news: Partial<GroupMetadata>): Promise<void> {
    const known = this.#known.get(news.id ?? '');
    if (isComplete(news)) {
      await this.learn(line, [news]);
    } else if (known !== undefined && news.id !== undefined) {
      const metadata = known.metadata.then((before) => ({ ...before, ...news }));
      metadata.catch(() => undefined);
      this.#known.set(news.id, { ...known, metadata });
    }
  }

  /** While the connection was down, events were missed. */
  forgetAll(): void {
    this.#known.clear();
  }

  /**
   * Members have changed: those who left must not read on with the old sender key, so the next
   * message makes a new one and sends it to everybody. Baileys does not do that itself.
   */
  async rekey({ socket, library }: Line, groupJid: string): Promise<void> {
    this.#known.delete(groupJid);
    const { creds, keys } = socket.authState;
    const me = creds.me;
    if (me === undefined) {
      return;
    }
    const names = [me.id, me.lid].flatMap((jid) => {
      const own = jid ? library.jidDecode(jid) : undefined;
      // As libsignal.js of Baileys names them: LIDs are of domain 1.
      const user = own?.domainType ? `${own.user}_${own.domainType}` : own?.user;
      return own === undefined ? [] : `${groupJid}::${user}::${own.device ?? 0}`;
    });
    // Sends run in a transaction of this name, and write back the keys that they began with.
    await keys.transaction(async () => {
      await keys.set({
        'sender-key': Object.fromEntries(names.map((name) => [name, null])),
        'sender-key-memory': { [groupJid]: null },
      });
    }, me.id);
  }

  #keep(groupJid: string, metadata: Promise<GroupMetadata>): Known {
    const entry = { metadata, untilMs: performance.now() + KEEP_MS };
    this.#known.set(groupJid, entry);
    return entry;
  }

  async #query(line: Line, groupJid: string): Promise<GroupMetadata> {
    const metadata = await asked('describe the group', line.socket.groupMetadata(groupJid), groupMeanings);
    await this.#learnMembers(line, [metadata]);
    return metadata;
  }

  #learnMembers(line: Line, groups: readonly GroupMetadata[]): Promise<void> {
    const members = groups.flatMap(({ participants }) => participants);
    return this.#identities.learn(
      line,
      members.map(({ id, phoneNumber, lid }) => [id, phoneNumber ?? lid]),
    );
  }
}

function isComplete(group: Partial<GroupMetadata>): group is GroupMetadata {
  return group.id !== undefined && group.participants !== undefined;
}

/** Old groups are called `<number>-<time>`, so the digits alone would not do. */
export function groupJidOf({ text, digits, suffix }: Address): string {
  return `${suffix === suffixes.group ? (text.split('@')[0] ?? '') : digits}@${suffixes.group}`;
}
