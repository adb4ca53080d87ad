/**
 * "Recording" and "typing" in a chat. Telegram shows an action for 5 s at most
 * (core.telegram.org/bots/api#sendchataction), so it is renewed until it is stopped.
 */
import type { Logger } from 'soundpost-base/logger';
import { z } from 'zod';
import { type BotApi, NoAnswer, Refused } from './api.ts';

const RENEW_MS = 4_500;
/** Over the longest delay, 60 s; an action that nobody stops ends then. */
const MOST_RENEWALS = 14;

export class ChatActions {
  readonly #api: Pick<BotApi, 'call'>;
  readonly #logger: Logger;
  readonly #shown = new Map<number, AbortController>();

  constructor(api: Pick<BotApi, 'call'>, logger: Logger) {
    this.#api = api;
    this.#logger = logger;
  }

  /**
   * Resolves when it is shown. A request to slow down is no error: the action is just not shown.
   */
  async show(chatId: number, action: 'typing' | 'record_voice'): Promise<void> {
    this.stop(chatId);
    const shown = new AbortController();
    this.#shown.set(chatId, shown);
    const { signal } = shown;
    const once = () =>
      this.#api.call('sendChatAction', { chat_id: chatId, action }, z.literal(true), { signal });
    try {
      await once();
      this.#renewLater(chatId, signal, once, MOST_RENEWALS);
    } catch (error) {
      if (!signal.aborted) this.stop(chatId);
      else return;
      if (!isForNow(error)) throw error;
    }
  }

  stop(chatId: number): void {
    this.#shown.get(chatId)?.abort();
    this.#shown.delete(chatId);
  }

  close(): void {
    for (const chatId of this.#shown.keys()) this.stop(chatId);
  }

  #renewLater(chatId: number, signal: AbortSignal, once: () => Promise<unknown>, left: number): void {
    if (left === 0) this.stop(chatId);
    if (signal.aborted) return;
    const timer = setTimeout(() => {
      once().then(
        () => this.#renewLater(chatId, signal, once, left - 1),
        (error: unknown) => {
          if (signal.aborted) return;
          this.#logger.debug({ err: error }, 'a chat action was not renewed');
          this.stop(chatId);
        },
      );
    }, RENEW_MS).unref();
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  }
}

const isForNow = (error: unknown): boolean =>
  error instanceof NoAnswer || (error instanceof Refused && error.code === 429);
