/** What the instance tells the authors of what has arrived: that it has, and with `readMessages` that it was read. */
import type { Logger } from 'soundpost-base/logger';
import { type Element, xml } from './element.ts';
import { ns } from './namespaces.ts';
import type { Stream } from './stream.ts';

interface AnswersOptions {
  readonly stream: Stream;
  /** Setting `readMessages`, as it is now. */
  readonly marksRead: () => boolean;
  readonly logger: Logger;
}

/** Beyond that the oldest are forgotten; they come again only right after a resumption. */
const MAX_REMEMBERED = 10_000;

export class Answers {
  readonly #options: AnswersOptions;
  readonly #answered = new Set<string>();

  constructor(options: AnswersOptions) {
    this.#options = options;
  }

  async toPerson(stanza: Element, messageId: string, from: string): Promise<void> {
    if (this.#answered.has(messageId)) {
      return;
    }
    if (this.#answered.size >= MAX_REMEMBERED) {
      this.#answered.clear();
    }
    this.#answered.add(messageId);
    if (stanza.getChild('request', ns.receipts) !== undefined) {
      await this.#send(from, 'chat', xml('received', { xmlns: ns.receipts, id: messageId }));
    }
    if (this.#shallMark(stanza)) {
      await this.#send(from, 'chat', xml('displayed', { xmlns: ns.chatMarkers, id: messageId }));
    }
  }

  /** @param roomId the id that the room gave the message, by which everybody in it knows it */
  async toRoom(stanza: Element, roomId: string, room: string): Promise<void> {
    if (this.#shallMark(stanza)) {
      await this.#send(room, 'groupchat', xml('displayed', { xmlns: ns.chatMarkers, id: roomId }));
    }
  }

  #shallMark(stanza: Element): boolean {
    return this.#options.marksRead() && stanza.getChild('markable', ns.chatMarkers) !== undefined;
  }

  async #send(to: string, type: 'chat' | 'groupchat', answer: Element): Promise<void> {
    const { stream, logger } = this.#options;
    await stream
      .send(xml('message', { type, to }, answer, xml('store', { xmlns: ns.hints })))
      .catch((error: unknown) => logger.debug({ err: error }, 'a receipt was not sent'));
  }
}
