/** What of REDIS_URL and its files is refused before anything connects. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readRedisAddress } from '../../src/process/backing-services.ts';
import { ConfigurationError, loadConfig } from '../../src/process/config.ts';

const SECRET_KEY = 'a secret of 32 bytes or more, as every process has it';
let folder = '';
let pem = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-address-'));
  pem = join(folder, 'ca.pem');
  await writeFile(pem, '-----BEGIN CERTIFICATE-----\n');
  await writeFile(join(folder, 'notes.txt'), 'no certificate');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const read = (environment: Record<string, string>) =>
  readRedisAddress(loadConfig({ SECRET_KEY, ...environment }));

it('files go with rediss:// of every kind', async () => {
  for (const url of ['rediss://h', 'rediss+sentinel://h/m', 'rediss+cluster://h']) {
    const { tls } = await read({ REDIS_URL: url, REDIS_CA_FILE: pem });
    expect(tls?.ca).toContain('BEGIN CERTIFICATE');
  }
});

it.each([
  [{ REDIS_URL: 'redis://user:pass-word@h/x' }, /^REDIS_URL: .*database/],
  [{ REDIS_URL: 'redis://h', REDIS_CA_FILE: '/ca.pem' }, /REDIS_CA_FILE.*rediss:\/\//],
  [
    { REDIS_URL: 'rediss://h', REDIS_CERT_FILE: '/cert.pem' },
    /REDIS_CERT_FILE: must be set together with REDIS_KEY_FILE/,
  ],
  [{ REDIS_URL: 'rediss://h', REDIS_CA_FILE: '/nowhere/ca.pem' }, /REDIS_CA_FILE: cannot be read/],
  [{ REDIS_URL: 'rediss://h', REDIS_CA_FILE: 'notes.txt' }, /is not a PEM file/],
])('%j is refused', async (environment, says) => {
  const inFolder = Object.entries(environment).map(([name, value]) => [
    name,
    value === 'notes.txt' ? join(folder, value) : value,
  ]);
  const refusal = await (async () => read(Object.fromEntries(inFolder)))().catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(ConfigurationError);
  expect((refusal as Error).message).toMatch(says);
  expect((refusal as Error).message).not.toContain('pass-word');
});
