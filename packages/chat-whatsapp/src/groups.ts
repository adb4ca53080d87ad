/** Groups with participants. Frequent queries look like abuse, so answers are cached. */
import type { GroupMetadata } from 'baileys';
import type { Address } from 'soundpost-chat/address';
import type { WhatsAppSocket } from './library.ts';
import { asked, groupMeanings } from './network-request.ts';
import { suffixes } from './phone-jid.ts';

/** An event may have been missed while the connection was down. */
const KEEP_MS = 10 * 60 * 1000;

export class Groups {
  readonly #known = new Map<string, { metadata: GroupMetadata; untilMs: number }>();

  /** Throws group_not_found. */
  async get(socket: WhatsAppSocket, groupJid: string): Promise<GroupMetadata> {
    const known = this.known(groupJid);
    if (known !== undefined) {
      return known;
    }
    const metadata = await asked('describe the group', socket.groupMetadata(groupJid), groupMeanings);
    this.learn(metadata);
    return metadata;
  }

  known(groupJid: string): GroupMetadata | undefined {
    const found = this.#known.get(groupJid);
    return found !== undefined && found.untilMs > Date.now() ? found.metadata : undefined;
  }

  learn(metadata: GroupMetadata): void {
    this.#known.set(metadata.id, { metadata, untilMs: Date.now() + KEEP_MS });
  }

  forget(groupJid: string): void {
    this.#known.delete(groupJid);
  }

  forgetAll(): void {
    this.#known.clear();
  }
}

/** Old groups are called `<number>-<time>`, so the digits alone would not do. */
export function groupJidOf({ text, digits, suffix }: Address): string {
  return `${suffix === suffixes.group ? (text.split('@')[0] ?? '') : digits}@${suffixes.group}`;
}
