/**
 * Makes the data of the first edition that `first-edition.all.test.ts` loads: runs its processes over a real Redis, leaves them in the middle of
 * everything, and writes down what they have kept. It was run once, with a checkout of f8bc16f in which `npm ci` had been run:
 *
 *     node test/upgrade/make-first-edition.ts <folder of the checkout>
 *
 * It takes a minute, uses nothing of the checkout but `src/main.ts`, and writes `state.json.gz` and `manifest.json` beside `talk.mp4` into
 * `test/upgrade/first-edition`. The test has to pass with what a second run makes, too: all ids, keys and secrets are new then.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Json } from '../client.ts';
import { freePorts } from '../ports.ts';
import { makeGateway } from './making/gateway.ts';
import { makeJobs } from './making/jobs.ts';
import { kill, openFirstEdition } from './making/processes.ts';
import type { Manifest } from './manifest.ts';
import { FIXTURE, type XmppServer } from './outside.ts';
import { takeSnapshot, writeSnapshot } from './snapshot.ts';

const [checkout] = process.argv.slice(2);
if (checkout === undefined) throw new Error('name the folder of a checkout of the first edition');
const { stdout: commit } = await promisify(execFile)('git', ['-C', checkout, 'rev-parse', 'HEAD']);

const edition = await openFirstEdition(checkout);
let xmppServer: XmppServer | undefined;
try {
  const inboxSession = await openInbox();
  const [apiPort, gatewayPort] = (await freePorts(2)).map(String);
  const eventsUrl = `http://127.0.0.1:${apiPort}/hooks/gateway`;
  const gateway = edition.start('gateway', {
    GATEWAY_PORT: gatewayPort ?? '',
    GATEWAY_EVENTS_URL: eventsUrl,
  });
  await gateway.says(/^Gateway/m);
  const address = `http://127.0.0.1:${gatewayPort}`;
  const jobs = await makeJobs(edition, { gateway: address, apiPort: apiPort ?? '' }, () => kill(gateway));
  const mainMessageId: string = jobs.finished[0]?.job.voiceMessage.key.id;
  const made = await makeGateway(edition, { eventsUrl, mainMessageId });
  xmppServer = made.xmppServer;
  const snapshot = await takeSnapshot(edition.redis, {
    data: join(edition.home, 'data'),
    prosody: xmppServer.prosody.dataFolder,
  });
  const { xmppServer: _, ...ofGateway } = made;
  const manifest: Manifest = {
    takenAtMs: snapshot.takenAtMs,
    madeBy: commit.trim(),
    environment: edition.environment,
    jobs,
    gateway: { ...ofGateway, inboxSession },
  };
  await writeSnapshot(join(FIXTURE, 'state.json.gz'), snapshot);
  await writeFile(join(FIXTURE, 'manifest.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
} finally {
  await xmppServer?.close();
  await edition.close();
}

/** A session of the inbox: only a whole service prints the link to it. */
async function openInbox(): Promise<string> {
  const service = edition.start('serve', { GATEWAY_PUBLIC_URL: '' });
  const link = new URL(await service.says(/^Inbox\s+(http\S+)/m));
  const gateway = await service.says(/^Gateway\s+(http\S+)/m);
  const response = await fetch(`${gateway}/inbox/api/session`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ code: link.searchParams.get('code') }),
  });
  const { session }: Json = await response.json();
  await kill(service);
  return session;
}
