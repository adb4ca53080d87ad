/** The server's archive of messages (XEP-0313), read page by page (XEP-0059). */
import { randomUUID } from 'node:crypto';
import type { Logger } from 'soundpost-base/logger';
import { attribute, childText, type Element, submission, xml } from './element.ts';
import { conditionOf, isNothingThere } from './failure.ts';
import type { Inbound } from './inbound.ts';
import { bareOf } from './jid.ts';
import type { Memory } from './memory.ts';
import { ns } from './namespaces.ts';
import type { Stream } from './stream.ts';

interface ArchivedMessage {
  readonly archiveId: string;
  /** When the server received it, ms since 1970. */
  readonly atMs: number;
  readonly message: Element;
}

interface ArchivePage {
  readonly messages: readonly ArchivedMessage[];
  /** Whether the archive ends here in the requested direction. */
  readonly complete: boolean;
  readonly firstId: string | undefined;
  readonly lastId: string | undefined;
}

interface ArchiveQuery {
  /** Default: the account's own archive. */
  readonly room?: string;
  /** Bare JID; only messages from and to it. */
  readonly with?: string;
  /** Not before this, ms since 1970. */
  readonly startMs?: number;
  /** Forward, starting after this id; empty: from the beginning … */
  readonly after?: string;
  /** … or backward, starting before this id; empty: from the end. */
  readonly before?: string;
  readonly max: number;
}

const PAGE_TIMEOUT_MS = 20_000;

export class Archive {
  readonly #stream: Stream;
  readonly #ownJid: string;
  readonly #reading = new Map<string, { readonly from: string; readonly messages: ArchivedMessage[] }>();

  constructor(stream: Stream, ownJid: string) {
    this.#stream = stream;
    this.#ownJid = ownJid;
  }

  /** @returns whether the stanza belongs to a page that is being read, so is no new message */
  take(stanza: Element): boolean {
    const result = stanza.getChild('result', ns.archive);
    if (result === undefined) {
      return false;
    }
    const reading = this.#reading.get(attribute(result, 'queryid') ?? '');
    // Anybody can send such a stanza; trust only the archive that was queried.
    if (reading !== undefined && bareOf(attribute(stanza, 'from') ?? this.#ownJid) === reading.from) {
      const archived = archivedMessage(result);
      if (archived !== undefined) {
        reading.messages.push(archived);
      }
    }
    return true;
  }

  /** @throws StanzaError: item-not-found when `after` or `before` is no longer in the archive */
  async page(query: ArchiveQuery): Promise<ArchivePage> {
    const queryId = randomUUID();
    const reading = { from: query.room ?? this.#ownJid, messages: [] };
    this.#reading.set(queryId, reading);
    try {
      const answer = await this.#stream.query('set', request(queryId, query), {
        ...(query.room === undefined ? {} : { to: query.room }),
        timeoutMs: PAGE_TIMEOUT_MS,
      });
      const fin = answer.getChild('fin', ns.archive);
      const set = fin?.getChild('set', ns.resultSet);
      return {
        messages: reading.messages,
        complete: attribute(fin, 'complete') === 'true',
        firstId: childText(set, 'first'),
        lastId: childText(set, 'last'),
      };
    } finally {
      this.#reading.delete(queryId);
    }
  }
}

function request(queryId: string, query: ArchiveQuery): Element {
  const filter = submission(new Map(), {
    FORM_TYPE: ns.archive,
    ...(query.with === undefined ? {} : { with: query.with }),
    ...(query.startMs === undefined ? {} : { start: new Date(query.startMs).toISOString() }),
  });
  const set = xml('set', { xmlns: ns.resultSet }, xml('max', {}, String(query.max)));
  if (query.after) {
    set.append(xml('after', {}, query.after));
  }
  if (query.before !== undefined) {
    set.append(xml('before', {}, query.before));
  }
  return xml('query', { xmlns: ns.archive, queryid: queryId }, filter, set);
}

function archivedMessage(result: Element): ArchivedMessage | undefined {
  const forwarded = result.getChild('forwarded', ns.forward);
  const message = forwarded?.getChild('message');
  const archiveId = attribute(result, 'id');
  const atMs = Date.parse(attribute(forwarded?.getChild('delay', ns.delay), 'stamp') ?? '');
  return message === undefined || archiveId === undefined || Number.isNaN(atMs)
    ? undefined
    : { archiveId, atMs, message };
}

// Messages in the account's archive that the gateway has not handled yet: after a start, and after
// every lost session.

interface CatchUpOptions {
  readonly archive: Archive;
  readonly memory: Memory;
  readonly inbound: Inbound;
  /** The current value of the setting `syncFullHistory`. */
  readonly wantsHistory: () => boolean;
  readonly logger: Logger;
}

const PAGE_MESSAGES = 100;

export class CatchUp {
  readonly #options: CatchUpOptions;
  #running: Promise<void> = Promise.resolve();
  /** Runs that have not ended, including waiting ones. */
  #runs = 0;

  constructor(options: CatchUpOptions) {
    this.#options = options;
  }

  /** Continues after the last seen message; the first time, reads the whole archive if wanted. */
  start(): void {
    const { logger } = this.#options;
    this.#runs++;
    this.#running = this.#running
      .then(() => this.#run())
      .catch((error: unknown) => logger.warn({ err: error }, 'reading the archive broke off'))
      .finally(() => {
        this.#runs--;
      });
  }

  /** A live message has this archive id. A running catch-up will reach it by itself. */
  async seen(archiveId: string): Promise<void> {
    if (this.#runs === 0) {
      await this.#options.memory.setLastSeen(archiveId);
    }
  }

  async #run(): Promise<void> {
    try {
      const last = await this.#options.memory.lastSeen();
      if (last !== null) {
        await this.#readOn(last, false);
      } else if (this.#options.wantsHistory()) {
        await this.#readOn('', true);
      } else {
        await this.#skipToEnd();
      }
    } catch (error) {
      if (conditionOf(error) === 'item-not-found') {
        // The archive no longer has the last seen message.
        await this.#skipToEnd();
      } else if (!isNothingThere(error)) {
        throw error;
      }
    }
  }

  async #readOn(from: string, history: boolean): Promise<void> {
    const { archive, memory, inbound } = this.#options;
    for (let after = from; ; ) {
      const page = await archive.page({ after, max: PAGE_MESSAGES });
      for (const { message, archiveId, atMs } of page.messages) {
        await inbound.message(message, { kind: 'archive', atMs, history });
        await memory.setLastSeen(archiveId);
      }
      if (page.complete || page.lastId === undefined) {
        return;
      }
      after = page.lastId;
    }
  }

  async #skipToEnd(): Promise<void> {
    const { archive, memory } = this.#options;
    const { lastId } = await archive.page({ before: '', max: 1 });
    // If the archive is empty, everything that follows is new.
    await memory.setLastSeen(lastId ?? '');
  }
}
