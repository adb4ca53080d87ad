/** People on the fake of WhatsApp as the contract suite wants them. */
import { buffer } from 'node:stream/consumers';
import type { WAMessage } from 'baileys';
import { startTestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import type { RunningGateway } from '../../../src/gateway/gateway-options.ts';
import { startGateway } from '../../../src/gateway/start.ts';
import type { Furniture, NetworkUnderTest, Peer, Received } from '../../contract/gateway-suite.ts';
import { API_KEY, caller, gatewayOptions, makeFolder } from '../gateway-fixture.ts';
import { FakeWhatsApp, type Sent } from './fake-whatsapp.ts';

const OWN_NUMBER = '4915112345678';

export async function openFakeWhatsApp(
  outboundAllow: string,
  use: (network: FakeWhatsApp) => void,
): Promise<NetworkUnderTest> {
  const redis = await startTestRedis();
  const folder = await makeFolder();
  const network = new FakeWhatsApp();
  network.delivers = true;
  use(network);
  const start = async (): Promise<RunningGateway> =>
    startGateway({
      ...(await gatewayOptions({ redisUrl: redis.url, dataDir: folder.path, outboundAllow })),
      sendsPerMinute: { whatsapp: 0 },
    });
  let gateway = await start();
  const url = (): string => `http://127.0.0.1:${gateway.port}`;
  return {
    transport: 'whatsapp',
    apiKey: API_KEY,
    nobody: '4915199999999',
    has: { captions: false, played: true, directory: true },
    url,
    newAccount: async () => ({ transport: 'whatsapp' }),
    async pair(instance) {
      const { body } = await caller(url())('GET', `/instance/connect/${instance}`);
      if (!String(body.base64).startsWith('data:image/png;base64,')) {
        throw new Error(`there is nothing to scan: ${JSON.stringify(body)}`);
      }
      network.socket.scan(OWN_NUMBER);
    },
    furnish: () => furnish(network),
    async restart() {
      await gateway.close();
      gateway = await start();
    },
    async close() {
      await gateway.close();
      await redis.close();
      await folder.remove();
    },
  };
}

async function furnish(network: FakeWhatsApp): Promise<Furniture> {
  const ownJid = `${OWN_NUMBER}@s.whatsapp.net`;
  const [admin, member, outsider] = [
    peer(network, '4915100000001', 'Ada'),
    peer(network, '4915100000002', 'Hedy'),
    peer(network, '4915100000003', 'Olga'),
  ];
  const groupName = 'The Sound Society';
  const groupJid = network.addGroup('120363000000000001', groupName, {
    [ownJid]: 'superadmin',
    [admin.jid]: 'admin',
    [member.jid]: null,
  });
  const group = network.groups.get(groupJid);
  network.socket.emit({
    'contacts.upsert': [admin, member].map(({ jid, name }) => ({ id: jid, name })),
    'chats.upsert': [{ id: groupJid, conversationTimestamp: 1_700_000_000 }],
    ...(group ? { 'groups.upsert': [group] } : {}),
  });
  return { ownJid, groupJid, groupName, admin, member, outsider };
}

function peer(network: FakeWhatsApp, number: string, name: string): Peer {
  const { jid } = network.addPerson(number, name);
  const groupsOf = (): string[] =>
    [...network.groups.values()]
      .filter(({ participants }) => participants.some(({ id }) => id === jid))
      .map(({ id }) => id);
  const sentHere = (): Sent[] => {
    const chats = new Set([jid, ...groupsOf()]);
    return network.sent.filter((sent) => chats.has(sent.jid));
  };
  const callsOf = (method: string): readonly (readonly unknown[])[] =>
    network.sockets.flatMap((socket) => socket.callsOf(method));
  let count = 0;
  return {
    number,
    jid,
    name,
    messages: async () => sentHere().map((sent) => received(network, sent)),
    async presences() {
      return callsOf('sendPresenceUpdate')
        .filter(([, chatJid]) => chatJid === undefined || chatJid === jid)
        .map(([presence]) => String(presence));
    },
    async read() {
      await until('the instance is connected', () => !network.socket.ended);
      for (const sent of sentHere()) {
        network.socket.receipt(sent.jid, sent.message.key.id ?? '', jid, 'READ');
      }
    },
    async play(messageId) {
      network.socket.receipt(jid, messageId, jid, 'PLAYED');
    },
    async say(text, groupJid) {
      if (network.blocked.has(jid)) {
        return { delivered: false };
      }
      count += 1;
      const key = { remoteJid: groupJid ?? jid, fromMe: false, id: `${number}-${count}` };
      network.socket.emit({
        'messages.upsert': {
          type: 'notify',
          messages: [
            {
              key: groupJid === undefined ? key : { ...key, participant: jid },
              message: { conversation: text },
              messageTimestamp: Math.floor(Date.now() / 1000),
              pushName: name,
            },
          ],
        },
      });
      return { delivered: true };
    },
    async call() {
      count += 1;
      const call = {
        chatId: jid,
        from: jid,
        id: `CALL-${number}-${count}`,
        date: new Date(),
        offline: false,
      };
      network.socket.emit({ call: [{ ...call, status: 'offer' }] });
    },
    async readByInstance() {
      return callsOf('readMessages')
        .flatMap(([keys]) => keys as WAMessage['key'][])
        .filter(({ remoteJid }) => remoteJid === jid).length;
    },
    rejectedCalls: async () => callsOf('rejectCall').filter(([, from]) => from === jid).length,
    async join({ inviteUrl, inviteCode }) {
      const group = [...network.inviteCodes].find(
        ([, code]) => code === inviteCode && inviteUrl === `https://chat.whatsapp.com/${code}`,
      );
      network.groups.get(group?.[0] ?? '')?.participants.push({ id: jid });
      return group !== undefined;
    },
  };
}

function received(network: FakeWhatsApp, { jid, message: { key, message } }: Sent): Received {
  const inGroup = jid.endsWith('@g.us');
  const edited = message?.protocolMessage?.editedMessage?.extendedTextMessage;
  if (edited) {
    const id = message?.protocolMessage?.key?.id ?? '';
    return { id, kind: 'edit', inGroup, text: edited.text ?? '', mentioned: [] };
  }
  const audio = message?.audioMessage;
  const written = message?.extendedTextMessage;
  const context = (audio ?? written)?.contextInfo;
  const common = {
    id: key.id ?? '',
    inGroup,
    mentioned: context?.mentionedJid ?? [],
    ...(context?.stanzaId ? { quotedId: context.stanzaId } : {}),
  };
  if (audio) {
    return {
      ...common,
      kind: 'voice',
      async download() {
        const { directPath = '', mediaKey = Buffer.of() } = audio;
        return buffer(await network.library.downloadContentFromMessage({ directPath, mediaKey }, 'audio'));
      },
    };
  }
  const text = written?.text ?? '';
  return { ...common, kind: text.includes('https://chat.whatsapp.com/') ? 'invite' : 'text', text };
}
