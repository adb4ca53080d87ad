/** Accounts of a real Prosody as the contract suite wants them: seen and steered by clients of another implementation. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DOMAIN, ROOMS, startTestProsody, type TestProsody } from 'soundpost-testing/prosody';
import { startTestRedis } from 'soundpost-testing/redis-server';
import { type PeerEvent, startPeer, type XmppPeer } from 'soundpost-testing/xmpp-peer';
import type { Furniture, NetworkUnderTest, Peer, Received } from '../../contract/gateway-suite.ts';
import { API_KEY, caller, type GatewaySetting, makeFolder, startTestGateway } from '../gateway-fixture.ts';

const people = {
  ada: { number: '12025550112', name: 'Ada Lovelace' },
  hedy: { number: '12025550113', name: 'Hedy Lamarr' },
  nikola: { number: '12025550114', name: '12025550114' },
} as const;
const own = ['12025550121', '12025550122', '12025550123', '12025550124'];
const room = { jid: `120363000000000001@${ROOMS}`, name: 'The Sound Society' };

const jidOf = (number: string): string => `${number}@${DOMAIN}`;
const passwordOf = (number: string): string => `password of ${number}`;

export async function openXmpp(outboundAllow: string): Promise<NetworkUnderTest> {
  const numbers = [...own, ...Object.values(people).map(({ number }) => number)];
  const prosody = await startTestProsody({
    accounts: Object.fromEntries(numbers.map((number) => [number, passwordOf(number)])),
  });
  const redis = await startTestRedis();
  const folder = await makeFolder();
  const setting: GatewaySetting = {
    redisUrl: redis.url,
    dataDir: folder.path,
    outboundAllow: `${outboundAllow},${prosody.outboundAllow}`,
    // The suite says more in a minute than an account should.
    sendsPerMinute: {},
  };
  let gateway = await startTestGateway(setting);
  const clients: XmppPeer[] = [];
  const logIn = async (number: string, acknowledges = true): Promise<XmppPeer> => {
    const client = await startPeer({
      port: prosody.port,
      jid: jidOf(number),
      password: passwordOf(number),
      acknowledges,
    });
    clients.push(client);
    return client;
  };
  const accounts = [...own];
  return {
    transport: 'xmpp',
    apiKey: API_KEY,
    nobody: '12025550199',
    has: { captions: false, played: false, directory: false },
    url: () => gateway.url,
    newAccount: async () => ({
      transport: 'xmpp',
      connection: connectionOf(accounts.shift() ?? '', prosody),
    }),
    furnish: async (instance) => {
      const { body } = await caller(gateway.url)('GET', '/inbox/api/instances');
      const { ownJid } = body.find((candidate: { name: string }) => candidate.name === instance);
      return furnish(ownJid, logIn);
    },
    async restart() {
      await gateway.close();
      gateway = await startTestGateway(setting);
    },
    async close() {
      await Promise.all(clients.map((client) => client.close()));
      await gateway.close();
      await redis.close();
      await prosody.close();
      await folder.remove();
    },
  };
}

function connectionOf(number: string, { port }: TestProsody): object {
  return { jid: jidOf(number), password: passwordOf(number), service: `xmpp://127.0.0.1:${port}` };
}

/** What somebody would do with another client: contacts, a group, and that the account finds both. */
async function furnish(
  ownJid: string,
  logIn: (number: string, acknowledges?: boolean) => Promise<XmppPeer>,
): Promise<Furniture> {
  const number = ownJid.slice(0, ownJid.indexOf('@'));
  const device = await logIn(number, false);
  const [ada, hedy, nikola] = await Promise.all([
    logIn(people.ada.number),
    logIn(people.hedy.number),
    logIn(people.nikola.number),
  ]);
  await device.do('join', { room: room.jid, nick: 'setup' });
  await inside(device, 'setup');
  await device.do('configure', {
    room: room.jid,
    fields: { 'muc#roomconfig_whois': 'anyone', 'muc#roomconfig_persistentroom': '1' },
  });
  await device.do('affiliate', { room: room.jid, jid: ada.jid, affiliation: 'admin' });
  await device.do('affiliate', { room: room.jid, jid: hedy.jid, affiliation: 'member' });
  for (const [client, nick] of [
    [ada, 'ada'],
    [hedy, 'hedy'],
  ] as const) {
    await client.do('join', { room: room.jid, nick });
    await inside(client, nick);
  }
  await device.do('publish', {
    node: 'urn:xmpp:bookmarks:1',
    item: room.jid,
    payload: `<conference xmlns="urn:xmpp:bookmarks:1" name="${room.name}" autojoin="true"/>`,
    options: { 'pubsub#persist_items': 'true', 'pubsub#access_model': 'whitelist' },
  });
  for (const [client, { name }] of [
    [ada, people.ada],
    [hedy, people.hedy],
  ] as const) {
    await device.do('rename', { jid: client.jid, name });
    await client.do('subscribe', { to: ownJid });
    await device.seen('the request', ({ type, from }) => type === 'subscribe' && from === client.jid);
    await device.do('approve', { to: client.jid });
    await client.seen(
      'the presence',
      ({ event, from }) => event === 'presence' && from?.startsWith(`${ownJid}/`),
    );
  }
  await device.close();
  return {
    ownJid,
    groupJid: room.jid,
    groupName: room.name,
    admin: peer(ada, people.ada, ownJid),
    member: peer(hedy, people.hedy, ownJid),
    outsider: peer(nikola, people.nikola, ownJid),
  };
}

async function inside(client: XmppPeer, nick: string): Promise<void> {
  await client.seen('the room', ({ event, from, error }) => {
    if (from !== `${room.jid}/${nick}` || event !== 'presence') return false;
    if (error.length > 0) throw new Error(`${nick} was not let in: ${error}`);
    return true;
  });
}

function peer(client: XmppPeer, { number, name }: { number: string; name: string }, ownJid: string): Peer {
  const nick = ownJid.slice(0, ownJid.indexOf('@'));
  const isDirect = ({ from }: PeerEvent): boolean => from?.split('/')[0] === ownJid;
  const isInGroup = ({ from }: PeerEvent): boolean => from === `${room.jid}/${nick}`;
  const messages = (): PeerEvent[] =>
    client.events.filter((event) => event.event === 'message' && (isDirect(event) || isInGroup(event)));
  const written = (): PeerEvent[] => messages().filter(({ body, error }) => body !== null && error === null);
  return {
    number,
    name,
    jid: client.jid,
    messages: async () => written().map((event) => received(event, client, isInGroup(event))),
    async presences() {
      return client.events.flatMap((event) => {
        if (event.event === 'message' && (isDirect(event) || isInGroup(event))) return event.states;
        if (event.event !== 'presence' || !isDirect(event)) return [];
        return event.type === 'available' && event.show === null ? ['available'] : ['unavailable'];
      });
    },
    async read() {
      const last = written().findLast((event) => isDirect(event) && event.markable);
      if (last !== undefined) await client.do('marker', { to: ownJid, id: last.id });
    },
    async play() {
      throw new Error('XMPP has no word for it');
    },
    async say(text, groupJid) {
      const id = await client.do('text', {
        to: groupJid ?? ownJid,
        body: text,
        kind: groupJid === undefined ? 'chat' : 'groupchat',
        markable: true,
      });
      await client.do('round_trip');
      return { delivered: !client.events.some((event) => event.id === id && event.error) };
    },
    async call() {
      await client.do('call', { to: ownJid, id: `call-${client.events.length}-${number}` });
    },
    readByInstance: async () => messages().filter(({ displayed }) => displayed !== null).length,
    rejectedCalls: async () => messages().filter(({ call }) => call?.name === 'reject').length,
    async join({ inviteUrl, inviteCode }) {
      const place = /^xmpp:([^?]+)\?join;password=/.exec(inviteUrl)?.[1] ?? '';
      const before = client.events.length;
      await client.do('join', { room: place, nick: number, password: inviteCode });
      const answer = await client.seen(
        'the room',
        (event) =>
          client.events.indexOf(event) >= before &&
          event.event === 'presence' &&
          event.from === `${place}/${number}`,
      );
      return answer.type !== 'error';
    },
  };
}

function received(event: PeerEvent, client: XmppPeer, inGroup: boolean): Received {
  const kind = event.file ? 'voice' : event.replace ? 'edit' : event.invite ? 'invite' : 'text';
  return {
    id: event.replace ?? event.id,
    kind,
    inGroup,
    mentioned: event.references.map(({ uri }: { uri: string }) => uri.replace(/^xmpp:/, '')),
    ...(kind === 'voice' ? { download: () => download(client, event.oob) } : { text: event.body }),
    ...(event.reply ? { quotedId: event.reply.id } : {}),
  };
}

async function download(client: XmppPeer, url: string): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-download-'));
  try {
    const path = join(folder, 'voice.ogg');
    await client.do('download', { url, path });
    return await readFile(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
