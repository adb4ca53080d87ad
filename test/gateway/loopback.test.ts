/** The loopback network by itself, as a transport. */

import { randomUUID } from 'node:crypto';
import { parseAddress } from 'soundpost-chat/address';
import { type Instance, Instances } from 'soundpost-chat/instances';
import type { Lease } from 'soundpost-chat/lease/lease';
import { MessageLog } from 'soundpost-chat/message-log';
import { SecretHasher } from 'soundpost-chat/tokens';
import type { OutgoingVoice, Transport, TransportReports } from 'soundpost-chat/transport';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { takeOver } from 'soundpost-testing/take-over';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLoopbackTransport } from '../../src/gateway/loopback/loopback-transport.ts';
import { ada, eventually } from './gateway-fixture.ts';

const logger = createLogger('silent');
const instance: Instance = {
  id: randomUUID(),
  name: 'alone',
  transport: 'loopback',
  settings: {
    rejectCall: false,
    msgCall: '',
    groupsIgnore: false,
    alwaysOnline: false,
    readMessages: false,
    readStatus: false,
    syncFullHistory: false,
  },
  createdAt: new Date().toISOString(),
  tokenHash: '',
  loggedOut: false,
};

let server: TestRedis;
let redis: Redis;
let network: Transport;
let told: string[];
let lease: Lease;

const reports: TransportReports = {
  statusChanged: async (_instanceId, messageId, status) => void told.push(`${messageId} ${status}`),
  messageArrived: async () => undefined,
  messageEdited: async () => undefined,
  connectionChanged: async () => undefined,
  callChanged: async () => undefined,
  participantsChanged: async () => undefined,
  presenceChanged: async () => undefined,
};

beforeEach(async () => {
  told = [];
  server = await startTestRedis();
  redis = connectPatiently(server.url);
  lease = await takeOver(redis);
  network = connectNetwork();
});

afterEach(async () => {
  await network.close();
  await closeRedis(redis);
  await server.close();
});

function connectNetwork(): Transport {
  return createLoopbackTransport({
    redis,
    log: new MessageLog(redis, 60),
    instances: new Instances({
      redis,
      hasher: new SecretHasher(Buffer.alloc(32)),
      sealer: new Sealer(Buffer.alloc(32)),
      apiKey: 'not used here',
    }),
    publicUrl: 'http://gateway.test',
    keepSeconds: 60,
    lease,
    logger,
  });
}

async function sendToAda(messageId: string): Promise<void> {
  const session = await network.open({ instance, connection: undefined, connect: true });
  const message: OutgoingVoice = {
    messageId,
    chat: await session.resolve(parseAddress(ada.number, 'number'), 'number'),
    file: '',
    durationMs: 1000,
    content: {
      url: '',
      mimetype: '',
      fileSha256: '',
      fileLength: '',
      seconds: 1,
      ptt: true,
      mediaKey: '',
      fileEncSha256: '',
      directPath: '',
      mediaKeyTimestamp: '',
      waveform: '',
    },
    context: { quoted: undefined, mentioned: [], mentionsEveryOne: false, linkPreview: false },
  };
  await session.sendVoice(message, AbortSignal.timeout(5000));
}

it('tells of a message that it was taken and delivered', async () => {
  await network.start(reports);
  await sendToAda('A');
  await eventually(
    async () => told,
    ({ length }) => length === 2,
  );
  expect(told).toEqual(['A SERVER_ACK', 'A DELIVERY_ACK']);
});

it('takes a message that is sent a second time for the one it has', async () => {
  await network.start(reports);
  await sendToAda('A');
  await sendToAda('A');
  await sendToAda('B');
  await eventually(
    async () => told,
    (all) => all.includes('B DELIVERY_ACK'),
  );
  expect(told).toEqual(['A SERVER_ACK', 'A DELIVERY_ACK', 'B SERVER_ACK', 'B DELIVERY_ACK']);
});

it('a delivery that broke off is made up for when the message is sent again, and nobody is told twice', async () => {
  const reached = Promise.withResolvers<void>();
  await network.start({
    ...reports,
    // The process comes to its end in the middle of this delivery.
    statusChanged: () => {
      reached.resolve();
      return new Promise(() => undefined);
    },
  });
  void sendToAda('A');
  await reached.promise;
  await network.close();
  network = connectNetwork();
  await network.start(reports);
  expect(told).toEqual([]);
  await sendToAda('A');
  await sendToAda('A');
  expect(told).toEqual(['A SERVER_ACK', 'A DELIVERY_ACK']);
});

it('takes nothing once the lease is lost', async () => {
  await network.start(reports);
  await takeOver(redis);
  await expect(sendToAda('A')).rejects.toMatchObject({ code: 'standby' });
  expect([told, lease.isValid]).toEqual([[], false]);
});
