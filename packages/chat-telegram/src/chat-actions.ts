/**
 * "Recording" and "typing" in a chat. Telegram shows an action for 5 s at most
 * (core.telegram.org/bots/api#sendchataction), so it is renewed until it is stopped.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'soundpost-base/logger';
import { z } from 'zod';
import { type BotApi, NoAnswer, Refused } from './api.ts';

const RENEW_MS = 4_500;
/** As long as the longest delay, 60 s; a stop that never comes ends here. */
const MOST_RENEWALS = 14;

export class ChatActions {
  readonly #api: BotApi;
  readonly #logger: Logger;
  readonly #shown = new Map<number, AbortController>();

  constructor(api: BotApi, logger: Logger) {
    this.#api = api;
    this.#logger = logger;
  }

  /** Resolves when it is shown. A request to slow down is no error: the action is just not shown. */
  async show(chatId: number, action: 'typing' | 'record_voice'): Promise<void> {
    this.stop(chatId);
    const shown = new AbortController();
    this.#shown.set(chatId, shown);
    const once = () =>
      this.#api.call('sendChatAction', { chat_id: chatId, action }, z.literal(true), { signal: shown.signal });
    try {
      await once();
    } catch (error) {
      this.stop(chatId);
      if (shown.signal.aborted || isForNow(error)) return;
      throw error;
    }
    void this.#renew(chatId, shown.signal, once);
  }

  stop(chatId: number): void {
    this.#shown.get(chatId)?.abort();
    this.#shown.delete(chatId);
  }

  close(): void {
    for (const chatId of this.#shown.keys()) this.stop(chatId);
  }

  async #renew(chatId: number, signal: AbortSignal, once: () => Promise<unknown>): Promise<void> {
    try {
      for (let renewals = 0; renewals < MOST_RENEWALS; renewals += 1) {
        await wait(RENEW_MS, undefined, { signal, ref: false });
        await once();
      }
    } catch (error) {
      if (!signal.aborted) this.#logger.debug({ err: error }, 'a chat action was not renewed');
    } finally {
      if (!signal.aborted) this.stop(chatId);
    }
  }
}

const isForNow = (error: unknown): boolean =>
  error instanceof NoAnswer || (error instanceof Refused && error.code === 429);
