// @module-tag openssl
/** The whole service on a Redis that takes TLS only, under a private authority, as a user with the permissions that the documentation gives. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type Certificates, makeCertificates } from 'soundpost-testing/certificates';
import { freePorts } from 'soundpost-testing/ports';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Tour, takeTour } from './redis-tour.ts';
import { useVideos } from './videos.ts';

/** With everything that has to be percent-encoded. */
const PASSWORD = 'p@ss:w/o%rd?#';

const videos = useVideos();
let folder = '';
let certificates: Certificates;
let server: TestRedis;
let port = 0;
let tour: Tour | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-tls-'));
  certificates = await makeCertificates(folder);
  [port = 0] = await freePorts(1);
  const users = join(folder, 'users.acl');
  // The default user stays for the test's own looks, by the socket.
  await writeFile(users, `${await documentedUser()}\nuser default on nopass ~* &* +@all\n`);
  server = await startTestRedis([
    ...['--tls-port', String(port), '--bind', '127.0.0.1', '--aclfile', users],
    ...['--tls-ca-cert-file', certificates.ca, '--tls-cert-file', certificates.server.cert],
    ...['--tls-key-file', certificates.server.key, '--tls-auth-clients', 'yes', '--appendonly', 'yes'],
  ]);
});
afterAll(async () => {
  await tour?.close();
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

/** The line of docs/operations/redis.md, with a password. */
async function documentedUser(): Promise<string> {
  const page = await readFile(
    join(import.meta.dirname, '..', '..', 'docs', 'operations', 'redis.md'),
    'utf8',
  );
  const [line] = /^user soundpost on .*$/m.exec(page) ?? [];
  if (line === undefined) throw new Error('docs/operations/redis.md gives no ACL user');
  return line.replace('>the-password', `>${PASSWORD}`);
}

it('does all that it does without a permission more, and writes no password down', async () => {
  tour = await takeTour(videos, {
    REDIS_URL: `rediss://soundpost:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`,
    REDIS_CA_FILE: certificates.ca,
    REDIS_CERT_FILE: certificates.client.cert,
    REDIS_KEY_FILE: certificates.client.key,
    LOG_LEVEL: 'debug',
  });
  const admin = new Redis(server.socketPath);
  try {
    expect(await admin.acl('LOG')).toEqual([]);
    const keys = await admin.keys('*');
    expect(keys.filter((key) => !key.startsWith('{soundpost}:'))).toEqual([]);
  } finally {
    admin.disconnect();
  }
  for (const { output } of tour.processes) {
    expect(output()).not.toMatch(/NOPERM/);
    expect(output()).not.toContain(PASSWORD);
    expect(output()).not.toContain(encodeURIComponent(PASSWORD));
  }
});
