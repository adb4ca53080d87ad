/**
 * The gateway of the first edition, left in the middle of everything: of two replicas the one with the duties stands still, while the other
 * takes in what nobody delivers any more.
 */
import { readFile } from 'node:fs/promises';
import type { Json } from '../../client.ts';
import type { RunningProcess } from '../../service.ts';
import { until } from '../../until.ts';
import type { GatewayManifest } from '../manifest.ts';
import { ada, adasJid, COURIER, hedy, jidOf, nikola, ROOM, type XmppServer } from '../outside.ts';
import { chatPath, type Gateways, ok, openGateways } from './gateways.ts';
import { makeInstances, talkOverLoopback, talkOverWhatsApp, talkOverXmpp } from './history.ts';
import { pendingEvents } from './pending-events.ts';
import { type FirstEdition, kill } from './processes.ts';

/** @param eventsUrl where nobody answers, so that the statuses of messages are still to be told */
export async function makeGateway(
  edition: FirstEdition,
  { eventsUrl, mainMessageId }: { readonly eventsUrl: string; readonly mainMessageId: string },
): Promise<Omit<GatewayManifest, 'inboxSession'> & { readonly xmppServer: XmppServer }> {
  const { redis, outside } = edition;
  const { hooks } = outside;
  hooks.answer = () => 204;
  const gateways = await openGateways(edition, eventsUrl);
  const { first, second, call, send, keyedSend, isAt, audio, xmppServer } = gateways;
  const instances = await makeInstances(edition, gateways);
  const { group, playedId, bouncedId, replay, refused } = await talkOverLoopback(gateways);
  const xmpp = await talkOverXmpp(gateways);
  const whatsAppId = await talkOverWhatsApp(gateways);

  // Somebody is away, and messages wait.
  const cellarsJid = instances.find(({ name }) => name === 'cellar')?.ownJid ?? '';
  await call('DELETE', '/instance/logout/cellar');
  const waiting = (await send('studio', { number: cellarsJid })).key.id;
  await isAt('studio', cellarsJid, waiting, 'SERVER_ACK');

  // Statuses that the API has still to be told.
  await first.call('POST', `${chatPath('main', ada.jid)}/messages/${mainMessageId}/played`);

  const history = await readHistory(gateways, {
    studio: [ada.jid, hedy.jid, group.jid, nikola.jid],
    cellar: [group.jid],
  });
  const shown = ok(await call('GET', '/instance/fetchInstances'));
  await pendingEvents(redis).untilAllAreTold();

  // Webhooks that are refused, after the first one was taken.
  let told = 0;
  hooks.answer = ({ json }) => (json.instance === 'attic' && ++told > 1 ? 503 : 204);
  const partly = (await send('attic', { number: ada.number })).key.id;
  await until(
    'all of them to be tried',
    () => hooks.calls.filter(({ json }) => json.instance === 'attic').length === 3,
  );
  const delivered = hooks.calls.filter(({ id, status }) => id.startsWith('evt_') && status === 204);
  await until('the refusals to be noted', async () => (await pendingEvents(redis).postponed()) === 2);

  // From here on nothing is delivered any more: the replica with the duties stands still, and its lease has not run out yet.
  xmppServer.line.deafen('</file-sharing>');
  const inDoubt = interrupted(send('courier', { number: adasJid }, 'in doubt'));
  const seen = await xmpp.ada.seen('the voice message', ({ file, id }) => file && id !== xmpp.firstId);
  first.process.signal('SIGSTOP');
  const queued = await keyedSend('studio', 'into the queue', { audio, number: hedy.number });
  const late = (await send('attic', { number: hedy.number })).key.id;
  await call('POST', `${chatPath('studio', ada.jid)}/replies`, { as: ada.jid, text: 'said late' });
  const delayed = { audio, number: ada.number, delay: 3000 };
  const before = await pendingEvents(redis).messageIds();
  const unsettled = interrupted(send('studio', delayed, 'cut off'));
  const cutOffId = await until('the message to be prepared', async () =>
    (await pendingEvents(redis).messageIds()).find((id) => !before.includes(id)),
  );
  await endAll(first.process, second.process);
  await Promise.all([inDoubt, unsettled]);

  // Messages to an account that nobody has connected.
  await xmpp.ada.do('text', { to: jidOf(COURIER), body: 'while nobody was there' });
  await xmpp.ada.do('text', { to: ROOM, body: 'in the room meanwhile', kind: 'groupchat' });
  await xmpp.ada.do('round_trip');

  const { webhooks, statuses, isRelayWaiting } = await pendingEvents(redis).read(['studio', 'attic']);
  if (!isRelayWaiting)
    throw new Error('the network delivered everything before it was stopped; make the data again');
  return {
    xmppServer,
    instances,
    shown,
    group,
    blockedJid: nikola.jid,
    history,
    messages: {
      played: { jid: ada.jid, id: playedId },
      bounced: { jid: nikola.jid, id: bouncedId },
      waiting: { jid: cellarsJid, id: waiting },
      queued: { jid: hedy.jid, id: queued.answer.key.id },
      ofAttic: [
        { jid: ada.jid, id: partly },
        { jid: hedy.jid, id: late },
      ],
    },
    idempotency: {
      replay,
      queued,
      refused,
      cutOff: { instance: 'studio', idempotencyKey: 'cut off', request: delayed, messageId: cutOffId },
      inDoubt: {
        instance: 'courier',
        idempotencyKey: 'in doubt',
        request: { audio, number: adasJid },
        messageId: seen.id,
      },
    },
    webhooks: { delivered: delivered.map(({ id }) => id), pending: webhooks },
    statuses,
    xmpp: { room: ROOM, firstId: xmpp.firstId },
    whatsapp: { messageId: whatsAppId, creds: await credentialsIn(gateways.whatsappLog) },
  };
}

/** Those of the session that is stored. */
async function credentialsIn(log: string): Promise<Json> {
  const events = (await readFile(log, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return events.findLast(({ event }) => event === 'connected').creds;
}

/** A request whose server dies. */
async function interrupted(answer: Promise<unknown>): Promise<void> {
  const isAnswered = await answer.then(
    () => true,
    () => false,
  );
  if (isAnswered)
    throw new Error('a request was answered before its gateway was killed; make the data again');
}

async function endAll(...processes: readonly RunningProcess[]): Promise<void> {
  for (const one of processes) one.signal('SIGKILL');
  await Promise.all(processes.map(kill));
}

async function readHistory(
  { messages }: Gateways,
  chats: Readonly<Record<string, readonly string[]>>,
): Promise<GatewayManifest['history']> {
  const found = Object.entries(chats).map(([instance, jids]) =>
    jids.map(async (jid) => ({
      instance,
      jid,
      messages: await messages(instance, jid),
    })),
  );
  return Promise.all(found.flat());
}
