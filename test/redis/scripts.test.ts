/** Every Lua script of the project: its header, what it is part of, and whether Redis takes it. */
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { NOT_HOLDER } from 'soundpost-chat/lease/lease';
import { KEEP_MS } from 'soundpost-kit/http/idempotency';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RATE_WINDOW_SECONDS, WRONG_KEYS_PER_MINUTE } from 'soundpost-kit/redis/rate';
import { EDITION } from 'soundpost-kit/redis/record';
import { readScript } from 'soundpost-kit/redis/script';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { own, RECORD_FIELDS, recordKey } from '../../src/jobs/bullmq-internals.ts';
import { MINUTE_MS } from '../../src/jobs/reservation.ts';
import { PAUSED_FIELD } from '../../src/jobs/tenants/api-keys.ts';
import { USAGE_DAYS } from '../../src/jobs/usage-days.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const BULLMQ = 'src/jobs/lua/bullmq';
const FENCE = 'packages/chat/src/lease/lua/fence.lua';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const composed = (path: string): string => readScript(pathToFileURL(join(ROOT, path)));
const scripts = globSync(['src/**/*.lua', 'packages/*/src/**/*.lua'], { cwd: ROOT }).sort();

/** Which module loads a script, and by what function. */
const loads = globSync(['src/**/*.ts', 'packages/*/src/**/*.ts'], { cwd: ROOT }).flatMap((module) =>
  [...read(module).matchAll(/(\w+)\(\s*new URL\('(\S+\.lua)', import\.meta\.url\)/g)].map(
    ([, by = '', path = '']) => ({ module, by, script: join(dirname(module), path) }),
  ),
);
const included = new Set(
  scripts.flatMap((script) =>
    [...read(script).matchAll(/^-- include: (\S+)$/gm)].map(([, name = '']) =>
      name.startsWith('soundpost-kit/')
        ? name.replace('soundpost-kit/', 'packages/kit/src/')
        : join(dirname(script), name),
    ),
  ),
);
const fenced = loads.filter(({ by }) => by === 'loadFencedScript').map(({ script }) => script);

/** What it does; KEYS and ARGV, which may go on for lines; what it returns. */
const HEADER =
  /^-- (?!KEYS|ARGV|Returns)\S.*\n-- KEYS: (?<keys>.+(?:\n-- {3}.+)*)\n-- ARGV: (?<args>.+(?:\n-- {3}.+)*)\n-- Returns: \S.*\n/;

/** Names of a header; the last may stand for any number of values. A key in parentheses says only on which node of a cluster it runs. */
function namesOf(list = ''): string[] {
  const names = list.split(/,\s*(?:\n-- +)?/);
  return names.join() === 'none' ? [] : names.filter((name) => !name.startsWith('('));
}

/** How many keys or arguments a script uses, and from which on in any number. */
function useOf(text: string, array: 'KEYS' | 'ARGV'): { count: number; openFrom: number | undefined } {
  const code = text.replaceAll(/--.*$/gm, '');
  const found = (pattern: string): RegExpExecArray[] => [
    ...code.matchAll(new RegExp(pattern.replaceAll('ARRAY', array), 'gm')),
  ];
  const fixed = found(String.raw`ARRAY\[(\d+)\]`).map(([, at]) => Number(at));
  const named = found(String.raw`local ([\w, ]+) = unpack\(ARRAY(?:, (\d+))?\)`).map(
    ([, names = '', from]) => Number(from ?? 1) + names.split(',').length - 1,
  );
  const open = [
    ...found(String.raw`(?<!= )unpack\(ARRAY(?:, (\d+))?\)`).map(([, from]) => Number(from ?? 1)),
    ...found(String.raw`ipairs\(ARRAY\)`).map(() => 1),
    ...found(String.raw`ARRAY\[#ARRAY\]`).map(() => 1),
    ...found(String.raw`ARRAY\[(\d+) \+ \w+\]`).map(([, before]) => Number(before) + 1),
    ...(array === 'ARGV' ? found(String.raw`for \w+ = (\d+), (?:#ARGV|own)\b`) : []).map(([, from]) =>
      Number(from),
    ),
  ];
  const openFrom = open.length === 0 ? undefined : Math.min(...open);
  return { count: Math.max(0, openFrom ?? 0, ...fixed, ...named), openFrom };
}

function headerUse(list: string | undefined): ReturnType<typeof useOf> {
  const names = namesOf(list);
  const open = names.findIndex((name) => name.endsWith('...'));
  return { count: open < 0 ? names.length : open + 1, openFrom: open < 0 ? undefined : open + 1 };
}

/** What Lua and TypeScript both have to know, and where: a line `local NAME = value -- NAME in file.ts`. */
const shared: Readonly<Record<string, string | number>> = {
  'NOT_HOLDER in lease.ts': NOT_HOLDER,
  'RATE_WINDOW_SECONDS * 1000 in rate.ts': RATE_WINDOW_SECONDS * 1000,
  'WRONG_KEYS_PER_MINUTE in rate.ts': WRONG_KEYS_PER_MINUTE,
  'MINUTE_MS in reservation.ts': MINUTE_MS,
  'PAUSED_FIELD in api-keys.ts': PAUSED_FIELD,
  "recordKey('extract', '') in bullmq-internals.ts": recordKey('extract', ''),
  'own.cancelled in bullmq-internals.ts': own.cancelled,
  'own.attempts in bullmq-internals.ts': own.attempts,
  'own.confirmed in bullmq-internals.ts': own.confirmed,
  'own.tenant in bullmq-internals.ts': own.tenant,
  'own.names in bullmq-internals.ts': own.names,
  'own.voiceSend in bullmq-internals.ts': own.voiceSend,
  'KEEP_MS in idempotency.ts': KEEP_MS,
  'EDITION in record.ts': String(EDITION),
  "ownKey('') in keys.ts": ownKey(''),
  'USAGE_DAYS in usage-days.ts': USAGE_DAYS,
};

it('finds the scripts', () => {
  expect(scripts.length).toBeGreaterThan(60);
  expect(fenced.length).toBeGreaterThan(5);
  const names = scripts.map((path) => basename(path));
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

it('reads what a header counts', () => {
  expect(useOf('local a, b = unpack(KEYS, 7)', 'KEYS')).toEqual({ count: 8, openFrom: undefined });
  expect(useOf("call('HSET', KEYS[1], unpack(ARGV, 2)) return ARGV[1]", 'ARGV')).toEqual({
    count: 2,
    openFrom: 2,
  });
  expect(useOf('for i = 9, #ARGV, 2 do -- ARGV[12]', 'ARGV')).toEqual({ count: 9, openFrom: 9 });
  expect(headerUse('one,\n--   two, field value...')).toEqual({ count: 3, openFrom: 3 });
  expect(headerUse('none')).toEqual({ count: 0, openFrom: undefined });
});

describe.each(scripts)('%s', (path) => {
  it('has a header, which names all that it takes', () => {
    const groups = HEADER.exec(read(path))?.groups;
    expect(groups).toBeDefined();
    const text = composed(path);
    expect({ keys: headerUse(groups?.keys), args: headerUse(groups?.args) }).toEqual({
      keys: useOf(text, 'KEYS'),
      args: useOf(text, 'ARGV'),
    });
  });

  it('says whether it runs behind the fence, and takes nothing of the fence for its own', () => {
    const isFenced = fenced.includes(path);
    expect(/Behind the fence\./.test(read(path))).toBe(isFenced);
    const code = read(path).replaceAll(/--.*$/gm, '');
    if (isFenced) expect(code).not.toMatch(/#(KEYS|ARGV)|(?:ipairs|unpack)\((KEYS|ARGV)\)/);
  });

  it('has no line that was meant to include and does not', () => {
    const meant = read(path).match(/^\s*--\s*include\b.*$/gim) ?? [];
    expect(meant.filter((line) => !/^-- include: \S+$/.test(line))).toEqual([]);
  });

  it('has comments that fit a line', () => {
    expect(
      read(path)
        .split('\n')
        .filter((line) => /^\s*--/.test(line) && line.length > 100),
    ).toEqual([]);
  });

  it('is loaded by one module beside its folder, or included', () => {
    const by = loads.filter(({ script }) => script === path).map(({ module }) => module);
    expect([...by, ...(included.has(path) ? ['another script'] : [])]).toHaveLength(1);
    const home = path.slice(0, path.indexOf('/lua/'));
    expect(by.filter((module) => dirname(module) !== home)).toEqual([]);
  });
});

it('BullMQ is known to scripts of bullmq-internals.ts alone', () => {
  const inside = /\{soundpost\}|'(?:returnvalue|failedReason|processedOn|finishedOn|prioritized|sp[A-Z]\w*)'/;
  expect(scripts.filter((path) => !path.startsWith(`${BULLMQ}/`) && inside.test(read(path)))).toEqual([]);
  expect(inside.test(read(`${BULLMQ}/times-of.lua`))).toBe(true);
});

describe('what Lua and TypeScript both know', () => {
  const lines = scripts.flatMap((path) =>
    [...read(path).matchAll(/^local (\w+) = ('[^']*'|\d+) -- (.+ in .+\.ts)$/gm)].map(
      ([, local = '', value = '', name = '']) => ({
        local,
        name,
        value: value.startsWith("'") ? value.slice(1, -1) : Number(value),
      }),
    ),
  );

  it.each(lines)('is the same: $name', ({ name, value }) => {
    expect(value).toBe(shared[name]);
  });

  it('is compared wherever it stands', () => {
    const names = new Set(lines.map(({ local }) => local));
    const all = scripts.flatMap((path) => [...read(path).matchAll(/^local ([A-Z_]+) = ['\d]/gm)]);
    expect(all.filter(([, local = '']) => names.has(local))).toHaveLength(lines.length);
  });

  it('is all that is compared here', () => {
    expect([...new Set(lines.map(({ name }) => name))].sort()).toEqual(Object.keys(shared).sort());
  });

  it('are the fields of a record', () => {
    const [, ...fields] = [...read(`${BULLMQ}/read-record.lua`).matchAll(/'(\w+)'/g)].map(([, name]) => name);
    expect(fields.slice(0, RECORD_FIELDS.length)).toEqual(RECORD_FIELDS);
  });
});

describe('Redis', () => {
  let server: TestRedis;
  let redis: Redis;
  beforeAll(async () => {
    server = await startTestRedis();
    redis = connectRedis({ url: server.url, role: 'request', logger: createLogger('silent') });
  });
  afterAll(async () => {
    await closeRedis(redis);
    await server.close();
  });

  it.each(scripts)('compiles %s', async (path) => {
    expect(await redis.script('LOAD', composed(path))).toMatch(/^[0-9a-f]{40}$/);
  });

  it.each(fenced)('compiles %s behind the fence', async (path) => {
    expect(await redis.script('LOAD', composed(FENCE) + composed(path))).toMatch(/^[0-9a-f]{40}$/);
  });
});
