/**
 * Baileys' credentials and Signal keys in Redis, each value sealed with the gateway's key. They
 * make the gateway a device of the account: with them one can read and write in its name.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { AuthenticationCreds, AuthenticationState, SignalDataTypeMap } from 'baileys';
import type { Logger } from 'soundpost-base/logger';
import { type Lease, loadFencedScript } from 'soundpost-chat/lease/lease';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Sealer } from 'soundpost-kit/signing/sealer';
import type { BaileysLibrary } from './library.ts';

interface SessionStoreOptions {
  readonly redis: Redis;
  readonly sealer: Sealer;
  readonly instanceId: string;
  /** A stale process that rolls ratchets back would break the session. */
  readonly lease: Lease;
  readonly logger: Logger;
}

const CREDENTIALS = 'credentials';
const keyField = (type: string, id: string): string => `${type}:${id}`;
const SAVE_AGAIN_MS = 1000;

const writeScript = loadFencedScript(new URL('./lua/session-write.lua', import.meta.url));
const eraseScript = loadFencedScript(new URL('./lua/session-erase.lua', import.meta.url));

export class SessionStore {
  readonly #options: SessionStoreOptions;
  readonly #hash: string;
  readonly #closing = new AbortController();
  #saving: Promise<void> = Promise.resolve();

  constructor(options: SessionStoreOptions) {
    this.#options = options;
    this.#hash = gatewayKey('whatsapp', options.instanceId, 'session');
  }

  /** The stored session, or a new one that has yet to be paired. */
  async load(library: BaileysLibrary): Promise<AuthenticationState> {
    const [stored] = await this.#read([CREDENTIALS]);
    const creds: AuthenticationCreds =
      stored === undefined ? library.initAuthCreds() : JSON.parse(stored, library.BufferJSON.reviver);
    return { creds, keys: this.#keys(library) };
  }

  /**
   * Writes the current credentials. Never rejects: it retries until Redis has them, it closes or
   * the lease is lost, because credentials older than those the server has seen break the session.
   */
  save(library: BaileysLibrary, creds: AuthenticationCreds): Promise<void> {
    const text = JSON.stringify(creds, library.BufferJSON.replacer);
    this.#saving = this.#saving.then(() => this.#write(text));
    return this.#saving;
  }

  /**
   * What Baileys' LID mapping holds: the LID of a number, and under `<LID>_reverse` the number;
   * without servers, in the order of `names`.
   */
  async mapped(names: string[]): Promise<(string | undefined)[]> {
    const texts = await this.#read(names.map((name) => keyField('lid-mapping', name)));
    return texts.map((text) => (text === undefined ? undefined : String(JSON.parse(text))));
  }

  async erase(): Promise<void> {
    await this.#saving;
    const { redis, lease } = this.#options;
    await eraseScript.run(redis, lease, [this.#hash], []);
  }

  /** Waits for pending writes; those that Redis refuses now are lost. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#saving;
  }

  async #write(text: string): Promise<void> {
    const { redis, lease, logger, instanceId } = this.#options;
    for (;;) {
      try {
        const args = [CREDENTIALS, this.#seal(CREDENTIALS, text)];
        await writeScript.run(redis, lease, [this.#hash], args);
        return;
      } catch (error) {
        logger.warn({ err: error, instanceId }, 'the credentials of a whatsapp session could not be stored');
        if (this.#closing.signal.aborted || !lease.isValid) {
          return;
        }
        await wait(SAVE_AGAIN_MS, undefined, { signal: this.#closing.signal }).catch(() => undefined);
      }
    }
  }

  #keys(library: BaileysLibrary): AuthenticationState['keys'] {
    const { redis, lease } = this.#options;
    return {
      get: async <T extends keyof SignalDataTypeMap>(type: T, ids: string[]) => {
        const values = await this.#read(ids.map((id) => keyField(type, id)));
        const found: { [id: string]: SignalDataTypeMap[T] } = {};
        for (const [index, id] of ids.entries()) {
          const value = values[index];
          if (value !== undefined) {
            found[id] = reviveKey(library, type, JSON.parse(value, library.BufferJSON.reviver));
          }
        }
        return found;
      },
      set: async (data) => {
        const changes = Object.entries(data).flatMap(([type, entries]) =>
          Object.entries(entries).flatMap(([id, value]) => {
            const field = keyField(type, id);
            const isGone = value === null || value === undefined;
            const text = isGone ? '' : JSON.stringify(value, library.BufferJSON.replacer);
            return [field, isGone ? '' : this.#seal(field, text)];
          }),
        );
        await writeScript.run(redis, lease, [this.#hash], changes);
      },
      clear: () => this.erase(),
    };
  }

  async #read(fields: string[]): Promise<(string | undefined)[]> {
    if (fields.length === 0) {
      return [];
    }
    const sealed = await this.#options.redis.hmget(this.#hash, ...fields);
    return sealed.map((value, index) =>
      value === null ? undefined : this.#options.sealer.open(this.#label(fields[index] ?? ''), value),
    );
  }

  #seal(field: string, text: string): string {
    return this.#options.sealer.seal(this.#label(field), text);
  }

  #label(field: string): string {
    return `whatsapp session ${this.#options.instanceId} ${field}`;
  }
}

/** Keys of the app state must be protobuf messages; JSON has made plain objects of them. */
function reviveKey<T extends keyof SignalDataTypeMap>(
  library: BaileysLibrary,
  type: T,
  value: SignalDataTypeMap[T],
): SignalDataTypeMap[T] {
  if (type !== 'app-state-sync-key') {
    return value;
  }
  const key: unknown = library.proto.Message.AppStateSyncKeyData.fromObject(value as object);
  return key as SignalDataTypeMap[T];
}

/** Whether a phone has linked this device. */
export function isPaired(creds: AuthenticationCreds): boolean {
  return creds.account !== undefined && creds.me !== undefined;
}
