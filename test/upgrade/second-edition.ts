/** The service as it is now, over what the first edition has left; its processes are started one after the other. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Client } from '../client.ts';
import { freePort } from '../ports.ts';
import { receivedBody } from '../received-body.ts';
import { startTestRedis } from '../redis-server.ts';
import { type Environment, type RunningProcess, ServiceHome } from '../service.ts';
import { type GatewayCall, gatewayCall } from './gateway-call.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { FIXTURE, type Outside, openOutside, openXmppServer, type XmppServer } from './outside.ts';
import { readSnapshot, restoreFolder, restoreRedis } from './snapshot.ts';

/** So long nobody served: every lock and every lease has run out, every retry is due. */
const ELAPSED_MS = 60_000;
const PRELOAD = join(import.meta.dirname, 'fake-baileys-preload.ts');

export interface SecondEdition {
  readonly manifest: Manifest;
  readonly outside: Outside;
  readonly xmppServer: XmppServer;
  readonly home: ServiceHome;
  readonly whatsappLog: string;
  /** The webhook-ids of what the gateway has told the API, also what was refused. */
  readonly relayed: readonly string[];
  readonly api: string;
  readonly alice: Client;
  readonly bob: Client;
  readonly rotated: Client;
  /** Base address of the gateway, where it is once it is started. */
  readonly gateway: string;
  /** With the gateway's own key. */
  readonly call: GatewayCall;
  startGateway(): Promise<void>;
  startWorker(): Promise<void>;
  /** Ends gateway and worker as an operator does, and starts them again. */
  restart(): Promise<void>;
  /** What a command prints. */
  run(...args: readonly string[]): RunningProcess;
  close(): Promise<void>;
}

/** Resolves when its API serves. */
export async function openSecondEdition(): Promise<SecondEdition> {
  await using stack = new AsyncDisposableStack();
  const redis = await startTestRedis();
  stack.defer(() => redis.close());
  const outside = await openOutside();
  stack.defer(() => outside.close());
  const snapshot = await readSnapshot(join(FIXTURE, 'state.json.gz'));
  // By whole seconds, as shiftTimes has it.
  const byMs = Math.floor((Date.now() - ELAPSED_MS - snapshot.takenAtMs) / 1000) * 1000;
  const manifest = await readManifest(byMs);
  const xmppServer = await openXmppServer((folder) => restoreFolder(snapshot, 'prosody', folder, { byMs }));
  stack.defer(() => xmppServer.close());
  const home = await ServiceHome.make({
    ...manifest.environment,
    REDIS_URL: redis.url,
    BOOTSTRAP_API_KEY: manifest.jobs.keys.alice,
    OUTBOUND_ALLOW: `${outside.outboundAllow},${xmppServer.outboundAllow}`,
    JOB_LOCK_SECONDS: '5',
    SENDS_PER_MINUTE: '0',
  });
  stack.defer(() => home.remove());
  const client = new Redis(redis.socketPath);
  await restoreRedis(snapshot, client, { byMs, elapsedMs: ELAPSED_MS });
  client.disconnect();
  await restoreFolder(snapshot, 'data', join(home.folder, 'data'), { byMs });
  const { keys, secrets } = manifest.jobs;
  const ofInstances = manifest.gateway.instances.flatMap(({ webhook }) => webhook?.secret ?? []);
  for (const secret of [...Object.values(secrets), ...ofInstances]) outside.hooks.trust(secret);

  const api = await home.start('api').says(/^API\s+(http\S+)/m);
  const relay = await openRelay(api);
  stack.defer(() => relay.close());
  const addresses: Environment = { PUBLIC_URL: api, GATEWAY_EVENTS_URL: relay.url };
  const whatsappLog = join(home.folder, 'whatsapp.log');
  const gatewayPort = String(await freePort());
  const gateway = `http://127.0.0.1:${gatewayPort}`;
  const running: RunningProcess[] = [];
  const startGateway = async (): Promise<void> => {
    const command = [process.execPath, '--import', PRELOAD, 'src/main.ts', 'gateway'];
    const environment = { ...addresses, GATEWAY_PORT: gatewayPort, FAKE_WHATSAPP_LOG: whatsappLog };
    const started = home.run(command, environment);
    running.push(started);
    await started.says(/^Gateway/m);
  };
  const startWorker = async (): Promise<void> => {
    const settings = { GATEWAY_URL: gateway, WORKER_CONCURRENCY: '1', DOWNLOADS_AHEAD: '0' };
    const started = home.start('worker', { ...addresses, ...settings });
    running.push(started);
    await started.says(/^Worker/m);
  };
  const opened = stack.move();
  return {
    manifest,
    outside,
    xmppServer,
    home,
    whatsappLog,
    relayed: relay.ids,
    api,
    alice: new Client(api, keys.alice),
    bob: new Client(api, keys.bob),
    rotated: new Client(api, keys.rotated),
    gateway,
    call: gatewayCall(gateway, manifest.environment.GATEWAY_API_KEY ?? ''),
    startGateway,
    startWorker,
    async restart() {
      for (const { signal, exited } of running.splice(0)) {
        signal('SIGTERM');
        await exited;
      }
      await startGateway();
      await startWorker();
    },
    run: (...args) => home.run([process.execPath, 'src/main.ts', ...args]),
    close: () => opened.disposeAsync(),
  };
}

/** Between gateway and API: notes what passes. */
async function openRelay(api: string): Promise<{ url: string; ids: string[]; close(): Promise<void> }> {
  const ids: string[] = [];
  const server = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    ids.push(String(request.headers['webhook-id']));
    const headers = Object.entries(request.headers).filter(
      ([name]) => name.startsWith('webhook-') || name === 'content-type',
    );
    const answer = await fetch(`${api}/hooks/gateway`, {
      method: 'POST',
      headers: headers.map(([name, value]) => [name, String(value)]),
      body,
    });
    response.writeHead(answer.status).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    ids,
    async close() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}
