/** The instances of the gateway in Redis: records, names and token hashes. */

import { randomUUID } from 'node:crypto';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import {
  type Connection,
  type CreateInstanceRequest,
  changedSettings,
  connectionSchema,
  defaultInstanceSettings,
  InstanceId,
  InstanceSettings,
  type SetSettingsRequest,
  TransportKind,
} from 'soundpost-contract/gateway-instances';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readText, unlessUnreadable, withEdition } from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import type { Sealer } from 'soundpost-kit/signing/sealer';
import { isSameSecret } from 'soundpost-kit/signing/signatures';
import { z } from 'zod';
import { gatewayKey } from './redis-keys.ts';
import { randomToken, type SecretHasher } from './tokens.ts';

const Instance = z.object({
  id: InstanceId,
  name: z.string(),
  transport: TransportKind,
  settings: InstanceSettings,
  createdAt: z.iso.datetime(),
  tokenHash: z.string(),
  /** A caller logged it out; it stays off until a caller connects it. */
  loggedOut: z.boolean(),
  /** Connection data of its network, sealed; see {@link Instances.connectionOf}. */
  sealedConnection: z.string().optional(),
});
export interface Instance extends z.infer<typeof Instance> {
  /** Why its record cannot be read; it can only be listed and deleted. Never stored. */
  readonly unreadable?: string;
}

const INSTANCE_RECORDS = gatewayKey('instances');
const NAMES = gatewayKey('instance-names');
const TOKENS = gatewayKey('instance-tokens');

const createScript = loadScript(new URL('./lua/instance-create.lua', import.meta.url));

const TOKEN_PURPOSE = 'instance token';

interface InstancesOptions {
  readonly redis: Redis;
  readonly hasher: SecretHasher;
  readonly sealer: Sealer;
  /** The gateway's own key. It opens every instance, so it may not be used as a token. */
  readonly apiKey: string;
}

export class Instances {
  readonly #options: InstancesOptions;
  readonly #redis: Redis;

  constructor(options: InstancesOptions) {
    this.#options = options;
    this.#redis = options.redis;
  }

  /** Throws name_in_use. The token is returned only here; Redis keeps its hash. */
  async create(request: CreateInstanceRequest): Promise<{ instance: Instance; token: string }> {
    const { hasher, sealer, apiKey } = this.#options;
    const token = request.token || randomToken();
    const id = randomUUID();
    const instance: Instance = {
      id,
      name: request.instanceName,
      transport: request.transport,
      settings: changedSettings(defaultInstanceSettings, request),
      createdAt: new Date().toISOString(),
      tokenHash: hasher.hash(TOKEN_PURPOSE, token),
      loggedOut: false,
      ...(request.connection
        ? { sealedConnection: sealer.seal(connectionLabel(id), JSON.stringify(request.connection)) }
        : {}),
    };
    const taken = new GatewayError('bad_request', 'token: is already in use; leave it out to generate one');
    if (isSameSecret(token, apiKey)) {
      throw taken;
    }
    const outcome = await createScript.run(
      this.#redis,
      [INSTANCE_RECORDS, NAMES, TOKENS],
      [instance.id, instance.name, instance.tokenHash, JSON.stringify(withEdition(instance))],
    );
    if (outcome === 'name') {
      throw new GatewayError('name_in_use', `instanceName: ${instance.name} is already in use`);
    }
    if (outcome === 'token') {
      throw taken;
    }
    return { instance, token };
  }

  /** @param nameOrId from a request's path */
  async find(nameOrId: string): Promise<Instance | undefined> {
    const id = InstanceId.safeParse(nameOrId).success ? nameOrId : await this.#redis.hget(NAMES, nameOrId);
    return id === null ? undefined : this.#find(id);
  }

  async findByToken(token: string): Promise<Instance | undefined> {
    const id = await this.#redis.hget(TOKENS, this.#options.hasher.hash(TOKEN_PURPOSE, token));
    return id === null ? undefined : this.#find(id);
  }

  /** All instances, oldest first. */
  async list(): Promise<Instance[]> {
    const records = Object.entries(await this.#redis.hgetall(INSTANCE_RECORDS));
    const all = await Promise.all(records.map(([id, text]) => this.#readable(id, text)));
    return all.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt) || a.name.localeCompare(b.name));
  }

  async #find(id: string): Promise<Instance | undefined> {
    const text = await this.#redis.hget(INSTANCE_RECORDS, id);
    return text === null ? undefined : this.#readable(id, text);
  }

  /** One that cannot be read has its id and name. */
  async #readable(id: string, text: string): Promise<Instance> {
    return unlessUnreadable(
      () => readText(Instance, text),
      async ({ message }): Promise<Instance> => ({
        ...{
          id,
          name: await nameOf(this.#redis, id),
          transport: 'loopback',
          settings: defaultInstanceSettings,
        },
        ...{ createdAt: new Date(0).toISOString(), tokenHash: '', loggedOut: true, unreadable: message },
      }),
    );
  }

  /** The instance's connection data, decrypted. */
  connectionOf({ id, transport, sealedConnection }: Instance): Connection | undefined {
    const schema = connectionSchema(transport);
    return sealedConnection === undefined || schema === undefined
      ? undefined
      : readText(schema, this.#options.sealer.open(connectionLabel(id), sealedConnection));
  }

  /** Throws instance_not_found. */
  changeSettings(instance: Instance, change: SetSettingsRequest): Promise<Instance> {
    return this.#change(instance, (record) => ({
      ...record,
      settings: changedSettings(record.settings, change),
    }));
  }

  /** Throws instance_not_found. */
  setLoggedOut(instance: Instance, loggedOut: boolean): Promise<Instance> {
    return this.#change(instance, (record) => ({ ...record, loggedOut }));
  }

  async remove({ id, name, tokenHash, unreadable }: Instance): Promise<void> {
    const tokens = Object.entries(unreadable === undefined ? {} : await this.#redis.hgetall(TOKENS));
    const own = tokens.flatMap(([hash, owner]) => (owner === id ? [hash] : []));
    await this.#redis
      .multi()
      .hdel(INSTANCE_RECORDS, id)
      .hdel(NAMES, name)
      .hdel(TOKENS, tokenHash, ...own)
      .exec();
  }

  async #change(instance: Instance, change: (record: Instance) => Instance): Promise<Instance> {
    const changed = await changeRecord(this.#redis, recordOf(instance.id), change);
    if (changed === undefined) {
      throw instanceNotFound();
    }
    return changed;
  }
}

export function instanceNotFound(): GatewayError {
  return new GatewayError('instance_not_found', 'instance: no instance has this name or id');
}

async function nameOf(redis: Redis, id: string): Promise<string> {
  const names = Object.entries(await redis.hgetall(NAMES));
  return names.find(([, named]) => named === id)?.[0] ?? id;
}

const recordOf = (id: string) => ({ key: INSTANCE_RECORDS, field: id, schema: Instance });
const connectionLabel = (id: string): string => `connection of ${id}`;

// Changes one JSON record in a Redis hash, safe against concurrent changes.

const replaceScript = loadScript(new URL('./lua/record-compare-and-set.lua', import.meta.url));

interface RecordPlace<Schema extends z.ZodType> {
  readonly key: string;
  readonly field: string;
  readonly schema: Schema;
}

/** @throws UnreadableRecord */
export async function readRecord<Schema extends z.ZodType>(
  redis: Redis,
  { key, field, schema }: RecordPlace<Schema>,
): Promise<z.output<Schema> | undefined> {
  const stored = await redis.hget(key, field);
  return stored === null ? undefined : readText(schema, stored);
}

/**
 * Replaces a record with the result of `change`; retries if another process changed it.
 * @returns the new record, or undefined if there is none
 */
export async function changeRecord<Schema extends z.ZodType>(
  redis: Redis,
  { key, field, schema }: RecordPlace<Schema>,
  change: (record: z.output<Schema>) => z.output<Schema>,
): Promise<z.output<Schema> | undefined> {
  for (;;) {
    const stored = await redis.hget(key, field);
    if (stored === null) {
      return undefined;
    }
    const changed = change(readText(schema, stored));
    const text = JSON.stringify(withEdition(Object(changed)));
    if ((await replaceScript.run(redis, [key], [field, stored, text])) === 1) {
      return changed;
    }
  }
}
