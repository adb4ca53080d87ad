import { randomBytes } from 'node:crypto';
import * as baileys from 'baileys';
import type { Lease } from 'soundpost-chat/lease/lease';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { takeOver } from 'soundpost-testing/take-over';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SessionStore } from '../src/session-store.ts';

const logger = createLogger('silent');
let server: TestRedis;
let redis: Redis;
let lease: Lease;
beforeAll(async () => {
  server = await startTestRedis();
  redis = connectPatiently(server.url);
  lease = await takeOver(redis);
});
afterEach(() => redis.del(HASH, HASH.replace(':one:', ':two:')));
afterAll(async () => {
  await closeRedis(redis);
  await server.close();
});

const storeOf = (instanceId: string, key = Buffer.alloc(32, 1)): SessionStore =>
  new SessionStore({ redis, sealer: new Sealer(key), instanceId, lease, logger });

const HASH = '{soundpost}:gateway:whatsapp:one:session';

describe('the session of a WhatsApp account', () => {
  it('is a new one for whom none is stored', async () => {
    const [a, b] = [await storeOf('one').load(baileys), await storeOf('one').load(baileys)];
    expect(a.creds.registered).toBe(false);
    expect(a.creds.noiseKey).not.toEqual(b.creds.noiseKey);
  });

  it('comes back from Redis as it was: credentials and every kind of key', async () => {
    const store = storeOf('one');
    const { creds, keys } = await store.load(baileys);
    Object.assign(creds, {
      me: { id: '4915112345678:7@s.whatsapp.net', lid: '99887766:7@lid', name: 'The account' },
      account: { details: randomBytes(20), accountSignature: randomBytes(64) },
      routingInfo: randomBytes(8),
      nextPreKeyId: 31,
    });
    await store.save(baileys, creds);
    const written: baileys.SignalDataSet = {
      'pre-key': { '30': { public: randomBytes(32), private: randomBytes(32) } },
      session: { '4915100000001.0': randomBytes(200) },
      'sender-key': { 'group::someone': randomBytes(100) },
      'sender-key-memory': { 'group@g.us': { 'a@s.whatsapp.net': true } },
      'app-state-sync-version': { regular: { version: 4, hash: randomBytes(128), indexValueMap: {} } },
      'lid-mapping': { '4915100000001': '112233' },
      'device-list': { '4915100000001': ['0', '7'] },
      tctoken: { 'a@s.whatsapp.net': { token: randomBytes(12), timestamp: '1700000000' } },
      'identity-key': { '4915100000001.0': randomBytes(33) },
    };
    const appStateKey = baileys.proto.Message.AppStateSyncKeyData.fromObject({
      keyData: randomBytes(32),
      timestamp: 1_700_000_000_000,
    });
    await keys.set({ ...written, 'app-state-sync-key': { AAAA: appStateKey } });

    const again = await storeOf('one').load(baileys);
    expect(again.creds).toEqual(creds);
    for (const [type, entries] of Object.entries(written)) {
      const ids = Object.keys(entries);
      const read = await again.keys.get(type as keyof baileys.SignalDataTypeMap, [...ids, 'unknown']);
      expect(read, type).toEqual(entries);
    }
    const { AAAA } = await again.keys.get('app-state-sync-key', ['AAAA']);
    // Baileys computes with the key's bytes and encodes it again, so it has to be a message and not its JSON.
    expect(AAAA).toBeInstanceOf(baileys.proto.Message.AppStateSyncKeyData);
    expect(AAAA?.keyData).toHaveLength(32);
    expect(Number(AAAA?.timestamp)).toBe(1_700_000_000_000);
  });

  it('forgets a key that is set to null', async () => {
    const { keys } = await storeOf('one').load(baileys);
    await keys.set({ session: { a: randomBytes(10), b: randomBytes(10) } });
    await keys.set({ session: { a: null } });
    expect(Object.keys(await keys.get('session', ['a', 'b']))).toEqual(['b']);
  });

  it('is readable by nobody who has only the database', async () => {
    const store = storeOf('one');
    const { creds, keys } = await store.load(baileys);
    creds.advSecretKey = 'a-secret-that-stands-out';
    const session = Buffer.from('a-ratchet-that-stands-out');
    await store.save(baileys, creds);
    await keys.set({ session: { a: session } });
    const stored = JSON.stringify(await redis.hgetall(HASH));
    for (const secret of [creds.advSecretKey, session.toString(), session.toString('base64')]) {
      expect(stored).not.toContain(secret);
      expect(stored).not.toContain(Buffer.from(secret).toString('base64'));
    }
    await expect(storeOf('one', Buffer.alloc(32, 2)).load(baileys)).rejects.toThrow();
  });

  it('is not to be exchanged with another instance’s, nor one key with another', async () => {
    const store = storeOf('one');
    const { creds, keys } = await store.load(baileys);
    await store.save(baileys, creds);
    await keys.set({ session: { a: randomBytes(10), b: randomBytes(10) } });
    const values = await redis.hgetall(HASH);
    await redis.hset('{soundpost}:gateway:whatsapp:two:session', values);
    await expect(storeOf('two').load(baileys)).rejects.toThrow();
    await redis.hset(HASH, 'session:a', values['session:b'] ?? '');
    await expect(keys.get('session', ['a'])).rejects.toThrow();
  });

  it('is written in the order in which it changed', async () => {
    const store = storeOf('one');
    const { creds } = await store.load(baileys);
    const saves = [];
    for (let id = 1; id <= 20; id += 1) {
      creds.nextPreKeyId = id;
      saves.push(store.save(baileys, creds));
    }
    await Promise.all(saves);
    expect((await storeOf('one').load(baileys)).creds.nextPreKeyId).toBe(20);
  });

  it('is gone when it is erased', async () => {
    const store = storeOf('one');
    const { creds } = await store.load(baileys);
    void store.save(baileys, creds);
    await store.erase();
    expect(await redis.exists(HASH)).toBe(0);
  });

  // Broken by hand (packages/chat/src/lease/lease.ts): without the look at the holder both are written.
  it('is not touched by a process from which another has taken the lease', async () => {
    const stale = storeOf('one');
    const { creds, keys } = await stale.load(baileys);
    await stale.save(baileys, creds);
    const address = '4915100000001.0';
    await keys.set({ session: { [address]: Buffer.from('old') } });
    lease = await takeOver(redis);
    const fresh = await storeOf('one').load(baileys);
    await fresh.keys.set({ session: { [address]: Buffer.from('new') } });
    const before = await redis.hgetall(HASH);

    await expect(keys.set({ session: { [address]: Buffer.from('stale') } })).rejects.toMatchObject({
      code: 'standby',
    });
    await stale.save(baileys, { ...creds, nextPreKeyId: 99 });
    await expect(stale.erase()).rejects.toMatchObject({ code: 'standby' });
    expect(await redis.hgetall(HASH)).toEqual(before);
  });
});
