/**
 * One instance's connection: pairs, reconnects after faults, and ends for good when the session is
 * invalid. There is one socket at a time; Baileys' sockets cannot be reused.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { AuthenticationState, BaileysEventMap, UserFacingSocketConfig } from 'baileys';
import { within } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { Lease } from 'soundpost-chat/lease/lease';
import type { Pairing } from 'soundpost-chat/transport';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { ConnectionState } from 'soundpost-contract/gateway-instances';
import { z } from 'zod';
import { disconnectReason } from './disconnect-reasons.ts';
import type { BaileysLibrary, WhatsAppSocket } from './library.ts';
import { PairingOffer } from './pairing.ts';
import { bareJid } from './phone-jid.ts';
import type { ProtocolVersion } from './protocol-version.ts';
import { isPaired, type SessionStore } from './session-store.ts';

export type SocketEvents = Partial<BaileysEventMap>;

/** A socket with the library that it came from. */
export interface Line {
  readonly socket: WhatsAppSocket;
  readonly library: BaileysLibrary;
  /** The version sent to the server; undefined: the library's own. */
  readonly version: ProtocolVersion['current'] | undefined;
}

interface ConnectionOptions {
  readonly instanceId: string;
  readonly instanceName: string;
  readonly lease: Lease;
  readonly library: () => Promise<BaileysLibrary>;
  readonly store: SessionStore;
  readonly logger: Logger;
  readonly version: Pick<ProtocolVersion, 'current' | 'renew'>;
  /** Besides `auth` and `version`; asked for at each attempt. */
  readonly socketConfig: (
    library: BaileysLibrary,
  ) => Promise<Omit<UserFacingSocketConfig, 'auth' | 'version'>>;
  /** How long to wait before the nth attempt in a row, counted from 1. */
  readonly retryDelayMs: (attempt: number) => number;
  /** @param code of the end of a connection */
  readonly stateChanged: (state: ConnectionState, reason?: string, code?: number) => void;
  /** A code was made, or, undefined, nobody used the last one. */
  readonly pairingChanged: (pairing: Pairing | undefined) => void;
  /** All events except those of the connection itself, in order. */
  readonly received: (line: Line, events: SocketEvents) => void;
  /** Called for each message that the server acknowledges without an error. */
  readonly acknowledged: (messageId: string) => void;
}

/** How long `connect` waits until there is something to scan, ms. */
const CONNECT_TIMEOUT_MS = 20_000;

/** Baileys' errors are Boom errors; the code of the disconnect reason is their status. */
const BoomError = z.object({ output: z.object({ statusCode: z.number() }) });

export class Connection {
  readonly #options: ConnectionOptions;
  #state: ConnectionState = 'close';
  #auth: AuthenticationState | undefined;
  #line: Line | undefined;
  /** Until the connection is open. */
  #pairing: PairingOffer | undefined;
  #attempt = 0;
  /** Resolves when `connect` can return: open, failed, or there is a picture to scan. */
  #shown = Promise.withResolvers<void>();
  /** Aborted to cancel a pending attempt. */
  #wanted = new AbortController();

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get ownJid(): string {
    const id = this.#auth && isPaired(this.#auth.creds) ? this.#auth.creds.me?.id : undefined;
    return id === undefined ? '' : bareJid(id);
  }

  get ownName(): string | undefined {
    return this.#auth?.creds.me?.name;
  }

  get pairing(): Pairing | undefined {
    return this.#pairing?.shown;
  }

  /** Throws not_connected; standby when another process has the lease. */
  line(): Line {
    this.#options.lease.assert();
    if (this.#state !== 'open' || this.#line === undefined) {
      throw new GatewayError(
        'not_connected',
        `instance ${this.#options.instanceName} is not connected to WhatsApp`,
      );
    }
    return this.#line;
  }

  /** Reads the stored session. @returns whether it can connect without pairing */
  async restore(): Promise<boolean> {
    this.#auth = await this.#options.store.load(await this.#options.library());
    return isPaired(this.#auth.creds);
  }

  /**
   * Begins to connect, and resolves when the connection is open, can be paired, or has failed.
   * Throws network_refused if WhatsApp gives no pairing code.
   * @param pairingNumber digits; asks for a code to be typed on the phone with this number
   */
  async connect(pairingNumber?: string): Promise<void> {
    if (this.#state === 'close') {
      await this.#begin();
    }
    await within(CONNECT_TIMEOUT_MS, () => this.#shown.promise).catch(() => undefined);
    if (pairingNumber !== undefined && this.#pairing?.shown !== undefined) {
      await this.#pairing.requestCode(pairingNumber);
    }
  }

  /** Unlinks the device from the account and deletes the session. */
  async logout(): Promise<void> {
    const line = this.#line;
    const loggingOut = this.#state === 'open' && line !== undefined ? line.socket.logout() : undefined;
    this.#hangUp();
    await loggingOut?.catch((error: unknown) => this.#warn(error, 'WhatsApp was not notified of a logout'));
    await line?.socket.end(undefined).catch(() => undefined);
    await this.#forget();
    this.#enter('close', 'logged out', 401);
  }

  /** Ends the connection and keeps the session. */
  async close(): Promise<void> {
    const line = this.#line;
    this.#hangUp();
    this.#state = 'close';
    await line?.socket.end(undefined).catch(() => undefined);
    await this.#options.store.close();
  }

  async #begin(): Promise<void> {
    this.#wanted = new AbortController();
    this.#shown = Promise.withResolvers();
    this.#attempt = 0;
    this.#enter('connecting');
    try {
      await this.#dial();
    } catch (error) {
      this.#enter('close');
      throw error;
    }
  }

  async #dial(): Promise<void> {
    const { library: load, store, socketConfig, lease } = this.#options;
    const { signal } = this.#wanted;
    const library = await load();
    const config = await socketConfig(library);
    let auth = this.#auth ?? (await store.load(library));
    if (!isPaired(auth.creds)) {
      // Baileys would try to log in with a half-finished pairing, so start from scratch.
      await store.erase();
      auth = await store.load(library);
    }
    if (signal.aborted) {
      return;
    }
    this.#auth = auth;
    lease.assert();
    const version = this.#options.version.current;
    const socket = library.makeWASocket({ ...config, ...(version && { version }), auth });
    const line: Line = { socket, library, version };
    this.#line = line;
    this.#pairing = new PairingOffer({
      ...{ socket, library, creds: auth.creds },
      credsChanged: () => {
        if (this.#line === line) void store.save(library, auth.creds);
      },
      changed: this.#options.pairingChanged,
    });
    socket.ws.on('CB:ack,class:message', ({ attrs }) => {
      if (attrs.id !== undefined && attrs.error === undefined) {
        this.#options.acknowledged(attrs.id);
      }
    });
    socket.ev.process((events) => {
      if (this.#line === line) {
        this.#take(line, auth, events);
      }
    });
  }

  #take(line: Line, auth: AuthenticationState, events: SocketEvents): void {
    const { 'creds.update': creds, 'connection.update': update, ...others } = events;
    if (creds !== undefined) {
      // Baileys has changed its credentials already; store them.
      void this.#options.store.save(line.library, auth.creds);
    }
    if (Object.keys(others).length > 0) {
      this.#options.received(line, others);
    }
    if (update?.qr !== undefined) {
      this.#pairing?.show(update.qr);
      this.#shown.resolve();
    }
    if (update?.connection === 'open') {
      this.#attempt = 0;
      this.#pairing = undefined;
      this.#enter('open');
    }
    if (update?.connection === 'close') {
      void this.#ended(line, codeOf(update.lastDisconnect?.error)).catch((error: unknown) =>
        this.#warn(error, 'a whatsapp connection could not be taken up again'),
      );
    }
  }

  async #ended({ library, version }: Line, code: number | undefined): Promise<void> {
    this.#line = undefined;
    const wasOffered = this.#pairing?.shown !== undefined;
    this.#pairing = undefined;
    const reason = disconnectReason(code);
    const paired = this.#auth !== undefined && isPaired(this.#auth.creds);
    const { logger, instanceId } = this.#options;
    logger.info({ instanceId, code, reason: reason.name }, 'a whatsapp connection ended');
    const { signal } = this.#wanted;
    if (reason.consequence === 'renew' && (await this.#options.version.renew(library, version))) {
      if (!signal.aborted) await this.#retry(reason);
    } else if (paired && (reason.consequence === 'retry' || reason.consequence === 'restart')) {
      await this.#retry(reason);
    } else {
      if (reason.consequence === 'forget') {
        await this.#forget();
      }
      // Baileys ends a connection whose codes ran out as one that timed out.
      if (!paired && wasOffered && reason.name === 'connectionLost') this.#options.pairingChanged(undefined);
      this.#enter('close', paired ? reason.meaning : `not paired: ${reason.meaning}`, code);
    }
  }

  async #retry(reason: ReturnType<typeof disconnectReason>): Promise<void> {
    const { signal } = this.#wanted;
    this.#enter('connecting', reason.meaning);
    for (;;) {
      this.#attempt += 1;
      const atOnce = reason.consequence !== 'retry' && this.#attempt === 1;
      const delayMs = atOnce ? 0 : this.#options.retryDelayMs(this.#attempt);
      await wait(delayMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) {
        return;
      }
      try {
        await this.#dial();
        return;
      } catch (error) {
        this.#warn(error, 'a whatsapp connection could not be begun');
      }
    }
  }

  /** Ignore all further events of the socket. */
  #hangUp(): void {
    this.#line = undefined;
    this.#pairing = undefined;
    this.#wanted.abort();
    this.#shown.resolve();
  }

  async #forget(): Promise<void> {
    this.#auth = undefined;
    await this.#options.store.erase();
  }

  #enter(state: ConnectionState, reason?: string, code?: number): void {
    const changed = this.#state !== state;
    this.#state = state;
    if (state !== 'connecting') {
      this.#shown.resolve();
    }
    if (changed) {
      this.#options.stateChanged(state, reason, code);
    }
  }

  #warn(error: unknown, message: string): void {
    this.#options.logger.warn({ err: error, instanceId: this.#options.instanceId }, message);
  }
}

function codeOf(error: unknown): number | undefined {
  const boom = BoomError.safeParse(error);
  return boom.success ? boom.data.output.statusCode : undefined;
}
