/** State of an upload arriving in a bucket, in its record, under the upload's lease. */

import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';

const FIELDS = ['multipart', 'arrivedBytes', 'tails'] as const;

const StoredState = z.object({
  multipart: z.string(),
  sizeBytes: z.coerce.number().int().nonnegative(),
  arrivedBytes: z.coerce.number().int().nonnegative(),
  tails: z.string().transform((text) => text.split(',').filter(Boolean).map(Number)),
});

type State = Readonly<z.infer<typeof StoredState>>;

interface Changes extends Partial<Pick<State, 'multipart' | 'arrivedBytes'>> {
  readonly tails?: readonly number[];
}

const note = loadScript(new URL('./lua/upload-state-note.lua', import.meta.url));

export class IncomingStates {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Undefined if the upload is not arriving. */
  async read(file: string): Promise<State | undefined> {
    return StoredState.safeParse(await this.#redis.hgetall(recordKey(file))).data;
  }

  async note(file: string, { multipart, arrivedBytes, tails }: Changes): Promise<void> {
    const fields = { multipart, arrivedBytes, tails: tails?.toString() };
    const given = Object.entries(fields).flatMap(([name, value]) =>
      value === undefined ? [] : [name, value],
    );
    await note.run(this.#redis, [recordKey(file)], given.map(String));
  }

  async forget(file: string): Promise<void> {
    await this.#redis.hdel(recordKey(file), ...FIELDS);
  }
}

function recordKey(file: string): string {
  return ownKey('upload', file);
}
