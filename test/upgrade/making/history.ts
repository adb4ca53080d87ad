/** Instances of the first edition on three networks, and what has happened with them and is over. */
import type { Json } from '../../client.ts';
import { until } from '../../until.ts';
import type { XmppPeer } from '../../xmpp-peer.ts';
import type { GatewayManifest, KeyedSend } from '../manifest.ts';
import { ada, adasJid, COURIER, connection, hedy, jidOf, nikola, ROOM } from '../outside.ts';
import { type AnsweredSend, chatPath, type Gateways, ok } from './gateways.ts';
import type { FirstEdition } from './processes.ts';

const nobody = '12025550199';
const adaOnWhatsApp = { number: '4915100000001', jid: '4915100000001@s.whatsapp.net' };

/** Instances by name, each open on its network. */
export async function makeInstances(
  { outside }: FirstEdition,
  { call }: Gateways,
): Promise<GatewayManifest['instances']> {
  const { hooks } = outside;
  const hook = { url: hooks.url, headers: { 'x-shelf': 'seven' } };
  const created = {
    studio: ok(
      await call('POST', '/instance/create', {
        instanceName: 'studio',
        token: 'a-token-that-its-owner-chose',
        rejectCall: true,
        msgCall: 'nobody is here',
        webhook: hook,
      }),
    ),
    attic: ok(await call('POST', '/instance/create', { instanceName: 'attic', webhook: { url: hooks.url } })),
    cellar: ok(await call('POST', '/instance/create', { instanceName: 'cellar' })),
    courier: ok(
      await call('POST', '/instance/create', { instanceName: 'courier', transport: 'xmpp', connection }),
    ),
    phone: ok(await call('POST', '/instance/create', { instanceName: 'phone', transport: 'whatsapp' })),
  };
  for (const { webhook } of [created.studio, created.attic]) hooks.trust(webhook.secret);
  await call('GET', '/instance/connect/phone');
  const jids = new Map<string, string>();
  for (const name of Object.keys(created)) {
    jids.set(
      name,
      await until(`${name} to be open`, async () => {
        const all = ok(await call('GET', '/inbox/api/instances'));
        const found = all.find((instance: Json) => instance.name === name);
        return found.state === 'open' && found.ownJid;
      }),
    );
  }
  const { settings } = ok(await call('POST', '/settings/set/studio', { alwaysOnline: true }));

  return Object.entries(created).map(([name, { hash, webhook, instance, ...made }]) => ({
    name,
    token: hash,
    settings: name === 'studio' ? settings.settings : made.settings,
    ...(webhook === undefined ? {} : { webhook }),
    id: instance.instanceId,
    ownJid: jids.get(name) ?? '',
  }));
}

interface Talk {
  readonly group: GatewayManifest['group'];
  readonly playedId: string;
  readonly bouncedId: string;
  readonly replay: AnsweredSend;
  readonly refused: KeyedSend;
}

/** Of studio, with people and a group of the loopback network. */
export async function talkOverLoopback({
  call,
  send,
  keyedSend,
  messages,
  isAt,
  audio,
}: Gateways): Promise<Talk> {
  const groups = ok(await call('POST', '/chat/findContacts/studio', {})).filter(
    ({ isGroup }: Json) => isGroup,
  );
  const group: string = groups[0].id;
  const invitation = ok(await call('GET', `/group/inviteCode/studio?groupJid=${group}`));
  await call('GET', `/group/acceptInviteCode/cellar?inviteCode=${invitation.inviteCode}`);
  const replay = await keyedSend('studio', 'the first note', { audio, number: ada.number });
  const playedId: string = replay.answer.key.id;
  await isAt('studio', ada.jid, playedId, 'DELIVERY_ACK');
  await call('POST', `${chatPath('studio', ada.jid)}/messages/${playedId}/played`);
  ok(
    await call('POST', '/chat/updateMessage/studio', {
      number: ada.number,
      text: 'with a caption',
      key: replay.answer.key,
    }),
  );
  await call('POST', '/group/sendInvite/studio', {
    groupJid: group,
    description: 'Come in',
    numbers: [hedy.number],
  });
  const toGroup = (await send('studio', { number: group })).key.id;
  await isAt('studio', group, toGroup, 'DELIVERY_ACK');
  await isAt('cellar', group, toGroup, 'DELIVERY_ACK');
  await call('POST', '/message/updateBlockStatus/studio', { number: nikola.number, status: 'block' });
  const bounced = (await send('studio', { number: nikola.number })).key.id;
  await isAt('studio', nikola.jid, bounced, 'ERROR');
  await call('POST', `${chatPath('studio', ada.jid)}/replies`, { as: ada.jid, text: 'heard and seen' });
  await until('the reply', async () => (await messages('studio', ada.jid)).length === 2);
  const refusedBody = { audio, number: nobody };
  await call('POST', '/message/sendMessengerAudio/studio', refusedBody, { 'Idempotency-Key': 'to nobody' });
  return {
    group: { jid: group, inviteCode: invitation.inviteCode },
    playedId,
    bouncedId: bounced,
    replay,
    refused: { instance: 'studio', idempotencyKey: 'to nobody', request: refusedBody },
  };
}

/** A voice message, which is kept for quotations. @returns its id */
export async function talkOverWhatsApp({ call, send, isAt }: Gateways): Promise<string> {
  const { id } = (await send('phone', { number: adaOnWhatsApp.number })).key;
  await isAt('phone', adaOnWhatsApp.jid, id, 'DELIVERY_ACK');
  await until('WhatsApp to have told who is known', async () =>
    ok(await call('POST', '/chat/findContacts/phone', {})).some(
      ({ isSaved, isGroup }: Json) => isSaved && !isGroup,
    ),
  );
  return id;
}

interface TalkOverXmpp {
  readonly ada: XmppPeer;
  readonly firstId: string;
}

/** A voice message that ada hears, words of hers, and a room that she invites into. */
export async function talkOverXmpp({ xmppServer, call, send, messages }: Gateways): Promise<TalkOverXmpp> {
  const peer = await xmppServer.ada(true);
  const firstId = (await send('courier', { number: adasJid })).key.id;
  await peer.seen('the first message', ({ id }) => id === firstId);
  const password = 'word-of-the-room';
  await peer.do('join', { room: ROOM, nick: 'ada' });
  await peer.seen('the room', ({ event, from }) => event === 'presence' && from === `${ROOM}/ada`);
  await peer.do('configure', {
    room: ROOM,
    fields: {
      'muc#roomconfig_persistentroom': '1',
      'muc#roomconfig_passwordprotectedroom': '1',
      'muc#roomconfig_roomsecret': password,
    },
  });
  ok(
    await call(
      'GET',
      `/group/acceptInviteCode/courier?inviteCode=${encodeURIComponent(`xmpp:${ROOM}?join;password=${password}`)}`,
    ),
  );
  await peer.do('text', { to: ROOM, body: 'welcome', kind: 'groupchat' });
  await peer.do('text', { to: jidOf(COURIER), body: 'good to hear you' });
  for (const jid of [ROOM, adasJid]) {
    await until(`the words of ${jid}`, async () => {
      return (await messages('courier', jid)).some(({ message }) => 'conversation' in message);
    });
  }
  return { ada: peer, firstId };
}
