/** The people of the loopback network as the contract suite wants them: seen and steered through the inbox's data. */

import { fetch } from 'soundpost-testing/http';
import { startTestRedis } from 'soundpost-testing/redis-server';
import type { Furniture, NetworkUnderTest, Peer, Received } from '../contract/gateway-suite.ts';
import { decrypted } from './decrypted.ts';
import { type FeedEvent, followFeed } from './feed.ts';
import {
  API_KEY,
  ada,
  caller,
  type GatewaySetting,
  hedy,
  makeFolder,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

export async function openLoopback(outboundAllow: string): Promise<NetworkUnderTest> {
  const redis = await startTestRedis();
  const folder = await makeFolder();
  const setting: GatewaySetting = { redisUrl: redis.url, dataDir: folder.path, outboundAllow };
  let gateway = await startTestGateway(setting);
  const call: TestGateway['call'] = (...request) => caller(gateway.url)(...request);
  const events: FeedEvent[] = [];
  let stop = await followFeed(gateway.url, (event) => events.push(event));
  return {
    transport: 'loopback',
    apiKey: API_KEY,
    nobody: '4930123456',
    has: { captions: true, played: true, directory: true },
    url: () => gateway.url,
    newAccount: async () => ({}),
    furnish: (instance) => furnish(instance, call, events),
    async restart() {
      stop();
      await gateway.close();
      gateway = await startTestGateway(setting);
      stop = await followFeed(gateway.url, (event) => events.push(event));
    },
    async close() {
      stop();
      await gateway.close();
      await redis.close();
      await folder.remove();
    },
  };
}

async function furnish(
  instance: string,
  call: TestGateway['call'],
  events: readonly FeedEvent[],
): Promise<Furniture> {
  const ownJidOf = async (name: string): Promise<string> => {
    const { body } = await call('GET', '/inbox/api/instances');
    return body.find((candidate: { name: string }) => candidate.name === name).ownJid;
  };
  const { body: contacts } = await call('POST', `/chat/findContacts/${instance}`);
  const group = contacts.find(({ isGroup }: { isGroup: boolean }) => isGroup);
  const ownJid = await ownJidOf(instance);
  const person = (who: typeof ada): Peer =>
    personPeer({ instance, ownJid, groupJid: group.id, call, events, ...who });
  await call('POST', '/instance/create', { instanceName: 'outsider' });
  const outsiderJid = await ownJidOf('outsider');
  return {
    ownJid,
    groupJid: group.id,
    groupName: group.pushName,
    admin: person(ada),
    member: person(hedy),
    // Nobody but instances is outside of the group.
    outsider: {
      ...personPeer({
        instance: 'outsider',
        ownJid,
        groupJid: group.id,
        call,
        events,
        number: outsiderJid.split('@')[0] ?? '',
        jid: outsiderJid,
        name: 'outsider',
      }),
      async messages() {
        const { body } = await call('GET', chatPath('outsider', ownJid, 'messages'));
        return received(
          body.filter(({ key }: Shown) => !key.fromMe),
          false,
        );
      },
      async join({ inviteCode }) {
        return (
          (await call('GET', `/group/acceptInviteCode/outsider?inviteCode=${inviteCode}`)).status === 200
        );
      },
    },
  };
}

const chatPath = (instance: string, jid: string, what: string): string =>
  `/inbox/api/instances/${instance}/chats/${encodeURIComponent(jid)}/${what}`;

interface PersonSetting {
  readonly instance: string;
  readonly ownJid: string;
  readonly groupJid: string;
  readonly call: TestGateway['call'];
  readonly events: readonly FeedEvent[];
  readonly number: string;
  readonly jid: string;
  readonly name: string;
}

function personPeer({ instance, ownJid, groupJid, call, events, number, jid, name }: PersonSetting): Peer {
  const shown = async (chatJid: string): Promise<Shown[]> =>
    (await call('GET', chatPath(instance, chatJid, 'messages'))).body;
  return {
    number,
    jid,
    name,
    async messages() {
      const direct = (await shown(jid)).filter(({ key }) => key.fromMe);
      const inGroup = (await shown(groupJid)).filter(({ key }) => key.fromMe);
      return [...(await received(direct, false)), ...(await received(inGroup, true))];
    },
    async presences() {
      return events
        .filter(
          ({ event, envelope }) => event === 'presence.update' && [jid, ownJid].includes(envelope.data.id),
        )
        .map(({ envelope }) => envelope.data.presences[ownJid]?.lastKnownPresence)
        .filter((presence) => presence !== undefined);
    },
    async read() {
      await call('POST', chatPath(instance, jid, 'opened'));
      await call('POST', chatPath(instance, groupJid, 'opened'));
    },
    async play(messageId) {
      await call('POST', chatPath(instance, jid, `messages/${messageId}/played`));
    },
    async say(text, inGroup) {
      const { body } = await call('POST', chatPath(instance, inGroup ?? jid, 'replies'), { as: jid, text });
      return body;
    },
    async call() {
      await call('POST', `/inbox/api/instances/${instance}/calls`, { as: jid });
    },
    async rejectedCalls() {
      return events.filter(
        ({ event, envelope }) =>
          event === 'call' && envelope.data.from === jid && envelope.data.status === 'reject',
      ).length;
    },
    async readByInstance() {
      return (await shown(jid)).filter(({ key, status }) => !key.fromMe && status === 'READ').length;
    },
    async join() {
      throw new Error('everybody of the loopback network is in the group already');
    },
  };
}

/** A message as the inbox shows it. */
interface Shown {
  readonly key: { readonly id: string; readonly fromMe: boolean };
  readonly status: string;
  readonly edited: boolean;
  readonly message: {
    readonly conversation?: string;
    readonly audioMessage?: { readonly url: string; readonly mediaKey: string; readonly caption?: string };
  };
  readonly context: {
    readonly quoted?: { readonly id: string };
    readonly mentioned: readonly string[];
    readonly mentionsEveryOne: boolean;
  };
}

async function received(messages: readonly Shown[], inGroup: boolean): Promise<Received[]> {
  return messages.flatMap(({ key, message, context, edited }) => {
    const text = message.conversation ?? message.audioMessage?.caption;
    const mentioned = context.mentionsEveryOne
      ? [ada.jid, hedy.jid]
      : context.mentioned.map((address) => `${address.split('@')[0]}@people.loopback`);
    const base: Received = {
      id: key.id,
      kind: message.audioMessage ? 'voice' : text?.includes('/i/') ? 'invite' : 'text',
      inGroup,
      mentioned,
      ...(text === undefined ? {} : { text }),
      ...(context.quoted ? { quotedId: context.quoted.id } : {}),
      ...(message.audioMessage ? { download: downloadOf(message.audioMessage) } : {}),
    };
    return edited ? [base, { ...base, kind: 'edit' as const }] : [base];
  });
}

function downloadOf({ url, mediaKey }: { url: string; mediaKey: string }): () => Promise<Buffer> {
  return async () => decrypted(Buffer.from(await (await fetch(url)).arrayBuffer()), mediaKey).plain;
}
