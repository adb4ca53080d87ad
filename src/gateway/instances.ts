/** The instances of the gateway in Redis: records, names and token hashes. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { GatewayError } from '../contract/gateway-errors.ts';
import {
  type CreateInstanceRequest,
  defaultInstanceSettings,
  InstanceId,
  InstanceSettings,
  TransportKind,
} from '../contract/gateway-instances.ts';
import type { Redis } from '../queue/redis.ts';
import { RedisScript } from '../queue/script.ts';
import { gatewayKey } from './redis-keys.ts';
import { randomToken, type SecretHasher } from './tokens.ts';

const Instance = z.object({
  id: InstanceId,
  name: z.string(),
  transport: TransportKind,
  settings: InstanceSettings,
  createdAt: z.iso.datetime(),
  tokenHash: z.string(),
});
export type Instance = z.infer<typeof Instance>;

const RECORDS = gatewayKey('instances');
const NAMES = gatewayKey('instance-names');
const TOKENS = gatewayKey('instance-tokens');

/** A name and a token belong to one instance; both are taken together or not at all. */
const createScript = new RedisScript(`
local records, names, tokens = KEYS[1], KEYS[2], KEYS[3]
local id, name, tokenHash, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('HEXISTS', names, name) == 1 then return 'name' end
if redis.call('HEXISTS', tokens, tokenHash) == 1 then return 'token' end
redis.call('HSET', names, name, id)
redis.call('HSET', tokens, tokenHash, id)
redis.call('HSET', records, id, record)
return 'created'
`);

const TOKEN_PURPOSE = 'instance token';

export class Instances {
  readonly #redis: Redis;
  readonly #hasher: SecretHasher;
  readonly #gatewayKey: string;

  /** @param gatewayApiKey may not be used as a token, since it opens every instance. */
  constructor(redis: Redis, hasher: SecretHasher, gatewayApiKey: string) {
    this.#redis = redis;
    this.#hasher = hasher;
    this.#gatewayKey = gatewayApiKey;
  }

  /** Throws name_in_use. The token is answered this once; only its hash is kept. */
  async create(request: CreateInstanceRequest): Promise<{ instance: Instance; token: string }> {
    const token = request.token ?? randomToken();
    const { instanceName, transport, token: _token, connection: _connection, ...settings } = request;
    const instance: Instance = {
      id: randomUUID(),
      name: instanceName,
      transport,
      settings: InstanceSettings.parse({ ...defaultInstanceSettings, ...settings }),
      createdAt: new Date().toISOString(),
      tokenHash: this.#hasher.hash(TOKEN_PURPOSE, token),
    };
    const taken = new GatewayError('bad_request', 'token: is in use already; leave it out to have one made');
    if (this.#hasher.matches(token, this.#gatewayKey)) {
      throw taken;
    }
    const outcome = await createScript.run(
      this.#redis,
      [RECORDS, NAMES, TOKENS],
      [instance.id, instance.name, instance.tokenHash, JSON.stringify(instance)],
    );
    if (outcome === 'name') {
      throw new GatewayError('name_in_use', `instanceName: ${instance.name} is in use already`);
    }
    if (outcome === 'token') {
      throw taken;
    }
    return { instance, token };
  }

  /** @param nameOrId as it stands in a path. */
  async find(nameOrId: string): Promise<Instance | undefined> {
    const id = InstanceId.safeParse(nameOrId).success ? nameOrId : await this.#redis.hget(NAMES, nameOrId);
    return id === null ? undefined : this.#record(id);
  }

  async findByToken(token: string): Promise<Instance | undefined> {
    const id = await this.#redis.hget(TOKENS, this.#hasher.hash(TOKEN_PURPOSE, token));
    return id === null ? undefined : this.#record(id);
  }

  /** All of them, oldest first. */
  async list(): Promise<Instance[]> {
    const records = await this.#redis.hvals(RECORDS);
    return records
      .map((record) => Instance.parse(JSON.parse(record)))
      .toSorted((a, b) => a.createdAt.localeCompare(b.createdAt) || a.name.localeCompare(b.name));
  }

  async remove(instance: Instance): Promise<void> {
    await this.#redis
      .multi()
      .hdel(RECORDS, instance.id)
      .hdel(NAMES, instance.name)
      .hdel(TOKENS, instance.tokenHash)
      .exec();
  }

  async #record(id: string): Promise<Instance | undefined> {
    const record = await this.#redis.hget(RECORDS, id);
    return record === null ? undefined : Instance.parse(JSON.parse(record));
  }
}
