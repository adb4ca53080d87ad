/**
 * One instance's connection: learns who the bot is, then receives updates, by webhook if the
 * gateway has a public address, otherwise by long polling
 * (core.telegram.org/bots/api#getting-updates).
 */
import { createHmac } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'soundpost-base/logger';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { ConnectionState } from 'soundpost-contract/gateway-instances';
import { awayReason } from 'soundpost-kit/observe/away';
import { z } from 'zod';
import { type BotApi, NoAnswer, Refused } from './api.ts';
import { Update, User, updateKinds, WebhookInfo } from './api-types.ts';
import { REVOKED } from './failure.ts';

interface ConnectionOptions {
  readonly instanceId: string;
  readonly botToken: string;
  readonly api: BotApi;
  readonly lease: Lease;
  readonly logger: Logger;
  /** Where Telegram posts updates; undefined: they are polled for. */
  readonly webhookUrl: string | undefined;
  readonly stateChanged: (state: ConnectionState, reason?: string) => void;
  /** Resolves once the update is stored: then it is confirmed. */
  readonly received: (update: Update, signal: AbortSignal) => Promise<void>;
  /** Before the nth attempt in a row, counted from 1, ms. */
  readonly retryDelayMs: (attempt: number) => number;
}

const POLL_SECONDS = 50;
/** A long message with a long quote has some 80 KB, as the server escapes it; an answer 1 MiB. */
const MOST_UPDATES = 10;
/** The server answers an empty list at the end of the time. */
const POLL_MARGIN_MS = 15_000;
/** So many failures in a row are not just a lost connection. */
const FAILURES_TO_TELL = 3;
const STORE_AGAIN_MS = 1_000;

const ANOTHER_POLLER =
  'another program receives the updates of this bot; stop it, then connect the instance again';
const FOREIGN_WEBHOOK =
  'another program receives the updates of this bot by a webhook; remove it there (deleteWebhook), then connect the instance again';

/** Only its id is needed to confirm an update, whatever else a newer server puts into it. */
const Numbered = z.looseObject({ update_id: z.int() });

export class Connection {
  readonly #options: ConnectionOptions;
  #state: ConnectionState = 'close';
  #running: AbortController | undefined;
  /** Updates by webhook are handled in the order in which they came. */
  #last: Promise<void> = Promise.resolve();

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Compared with the header of each webhook; the same after a restart. */
  get secretToken(): string {
    const { botToken, instanceId } = this.#options;
    return createHmac('sha256', botToken).update(`soundpost webhook ${instanceId}`).digest('base64url');
  }

  /** Does nothing while open or connecting. */
  connect(): void {
    if (this.#state !== 'close') return;
    const running = new AbortController();
    this.#running = running;
    this.#enter('connecting');
    void this.#run(AbortSignal.any([running.signal, this.#options.lease.lost]));
  }

  async logout(): Promise<void> {
    const { api, webhookUrl } = this.#options;
    const wasOpen = this.#state !== 'close';
    this.end('logged out');
    if (wasOpen && webhookUrl !== undefined) {
      // Until the next connect Telegram keeps updates, for 24 hours.
      await api.call('deleteWebhook', {}, z.unknown()).catch(() => undefined);
    }
  }

  /** Ends for good, until a caller connects. */
  end(reason: string): void {
    if (this.#state === 'close') return;
    this.close();
    this.#enter('close', reason);
  }

  /** Ends here; another process may serve next. */
  close(): void {
    this.#running?.abort();
    this.#running = undefined;
  }

  /** An update that came by webhook. Rejects if it could not be stored: Telegram sends it again. */
  receive(update: unknown): Promise<void> {
    const signal = AbortSignal.any([this.#running?.signal ?? AbortSignal.abort(), this.#options.lease.lost]);
    const handled = this.#last.then(() => this.#store(update, signal));
    this.#last = handled.catch(() => undefined);
    return handled;
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      try {
        await this.#open(signal);
        failures = 0;
        this.#enter('open');
        if (this.#options.webhookUrl !== undefined) return;
        await this.#poll(signal, () => {
          failures = 0;
          this.#enter('open');
        });
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        await this.#recover(error, failures, signal);
      }
    }
  }

  async #open(signal: AbortSignal): Promise<void> {
    const { api, webhookUrl } = this.#options;
    await api.call('getMe', {}, User, { signal });
    const { url } = await api.call('getWebhookInfo', {}, WebhookInfo, { signal });
    // Another program's webhook is left alone: it would lose its updates without a word.
    if (url !== '' && !url.endsWith(this.#ownPath)) throw new Refused(409, FOREIGN_WEBHOOK);
    if (webhookUrl === undefined) {
      if (url !== '') await api.call('deleteWebhook', {}, z.unknown(), { signal });
      return;
    }
    await api.call(
      'setWebhook',
      {
        url: webhookUrl,
        secret_token: this.secretToken,
        allowed_updates: updateKinds,
        // One after the other, so that messages keep their order.
        max_connections: 1,
      },
      z.unknown(),
      { signal },
    );
  }

  get #ownPath(): string {
    return webhookPath(this.#options.instanceId);
  }

  async #poll(signal: AbortSignal, answered: () => void): Promise<void> {
    const { api, lease } = this.#options;
    for (let offset: number | undefined; ; ) {
      lease.assert();
      const updates = await api.call(
        'getUpdates',
        { offset, limit: MOST_UPDATES, timeout: POLL_SECONDS, allowed_updates: updateKinds },
        z.array(Numbered),
        { signal, timeoutMs: POLL_SECONDS * 1000 + POLL_MARGIN_MS },
      );
      answered();
      for (const update of updates) {
        await this.#untilStored(update, signal);
        // The next request confirms all before it; the server forgets them then.
        offset = update.update_id + 1;
      }
    }
  }

  async #untilStored(update: unknown, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        return await this.#store(update, signal);
      } catch (error) {
        signal.throwIfAborted();
        this.#options.logger.warn({ err: error }, 'an update could not be stored and is tried again');
        await wait(STORE_AGAIN_MS, undefined, { signal });
      }
    }
  }

  /** Rejects only while Redis or the storage is away; what fails for good is logged and dropped. */
  async #store(update: unknown, signal: AbortSignal): Promise<void> {
    const { received, logger, instanceId } = this.#options;
    signal.throwIfAborted();
    const parsed = Update.safeParse(update);
    try {
      if (!parsed.success) throw parsed.error;
      await received(parsed.data, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (awayReason(error) !== undefined) throw error;
      logger.error({ err: error, instanceId }, 'an update of telegram could not be reported');
    }
  }

  /** Waits before the next attempt, or ends the connection. */
  async #recover(error: unknown, failures: number, signal: AbortSignal): Promise<void> {
    const final = endOf(error);
    if (final !== undefined) return this.end(final);
    const reason = error instanceof NoAnswer || error instanceof Refused ? error.message : undefined;
    if (reason === undefined) this.#options.logger.error({ err: error }, 'receiving from telegram failed');
    if (failures >= FAILURES_TO_TELL) this.#enter('connecting', reason);
    const asked = error instanceof Refused ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    const delayMs = Math.max(asked, this.#options.retryDelayMs(failures));
    await wait(delayMs, undefined, { signal, ref: false }).catch(() => undefined);
  }

  #enter(state: ConnectionState, reason?: string): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#options.stateChanged(state, reason);
  }
}

export const webhookPath = (instanceId: string): string => `/webhooks/telegram/${instanceId}`;

/** Why it makes no sense to try again; undefined: it does. */
function endOf(error: unknown): string | undefined {
  if (!(error instanceof Refused)) return undefined;
  const { code, message } = error;
  switch (code) {
    case 401:
    // The public server's answer to a path whose token has no valid form.
    case 404:
      return REVOKED;
    case 409:
      return /webhook/i.test(message) ? FOREIGN_WEBHOOK : ANOTHER_POLLER;
    case 400:
      return /^Logged out/i.test(message)
        ? 'the bot was logged out of this Bot API server (logOut); it can be used with another one after 10 minutes'
        : `Telegram refused the connection, in its words: ${message}`;
    default:
      return undefined;
  }
}
