/**
 * Reads records from Redis: JSON texts and hashes, each with its edition in the field `version`.
 * What cannot be read is an {@link UnreadableRecord}: lists show or skip it, workers leave it to
 * others.
 */
import type { z } from 'zod';
import type { Redis } from './connection.ts';

/** The edition that this version writes, and the only one that it reads. */
export const EDITION = 1;

/**
 * A record as it is stored, with its edition. Raise that when an older version must not act on what
 * a newer one writes.
 */
export function withEdition<Fields extends object>(fields: Fields): Fields & { version: typeof EDITION } {
  return { ...fields, version: EDITION };
}

/** The record is there, but this version cannot read it. */
export class UnreadableRecord extends Error {
  override readonly name = 'UnreadableRecord';

  /** @param why a clause that follows "cannot be read:" */
  constructor(why = 'it is damaged', cause?: unknown) {
    super(why, { cause });
  }
}

/**
 * @param value a hash's fields or parsed JSON; its `version` need not be in the schema
 * @throws UnreadableRecord
 */
export function readValue<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const version = versionOf(value);
  if (Number(version) !== EDITION) {
    throw new UnreadableRecord(`it has record version ${version}, and this service reads version ${EDITION}`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new UnreadableRecord(undefined, parsed.error);
}

/** A record from before there were editions has none, and is of the first. */
function versionOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'version' in value ? value.version : EDITION;
}

/** @param text JSON @throws UnreadableRecord */
export function readText<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UnreadableRecord(undefined, error);
  }
  return readValue(schema, value);
}

/** What `read` makes of those that this version can read; the others are left out. */
export function readable<Item, Read>(items: readonly Item[], read: (item: Item) => Read): Read[] {
  return items.flatMap((item) => {
    try {
      return [read(item)];
    } catch (error) {
      if (error instanceof UnreadableRecord) return [];
      throw error;
    }
  });
}

/** The answer of a command on a key. @throws UnreadableRecord if the key holds another type */
export async function ofItsType<Answer>(command: Promise<Answer>): Promise<Answer> {
  try {
    return await command;
  } catch (error) {
    throw isWrongType(error) ? new UnreadableRecord(undefined, error) : error;
  }
}

/** Whether Redis refused a command because the key holds another type. */
export function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.message.includes('WRONGTYPE');
}

/** A hash; undefined if there is none. @throws UnreadableRecord */
export async function readHash<Schema extends z.ZodType>(
  redis: Redis,
  key: string,
  schema: Schema,
): Promise<z.output<Schema> | undefined> {
  const fields = await ofItsType(redis.hgetall(key));
  return Object.keys(fields).length === 0 ? undefined : readValue(schema, fields);
}

/** What `read` returns; `instead` for an unreadable record. */
export async function unlessUnreadable<Read, Instead = undefined>(
  read: () => Read | Promise<Read>,
  instead: (error: UnreadableRecord) => Instead,
): Promise<Read | Instead> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof UnreadableRecord) return instead(error);
    throw error;
  }
}
