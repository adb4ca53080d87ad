/** What becomes of the instances of the first edition: their messages, their events, their networks. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { BufferJSON } from 'baileys';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Json } from '../client.ts';
import { until } from '../until.ts';
import { type GatewayAnswer, type GatewayCall, gatewayCall } from './gateway-call.ts';
import type { GatewayManifest, KeyedSend } from './manifest.ts';
import { ada, adasJid } from './outside.ts';
import type { SecondEdition } from './second-edition.ts';
import { signalKeys } from './whatsapp-keys.ts';

/** Other processes of the machine may be busy. */
const PATIENCE_MS = 60_000;
const patience = { timeout: PATIENCE_MS * 1.5 };

/** Of each instance what the first edition told of it. */
const asShownThen = (instances: Json[]): object[] =>
  instances.map(({ instanceName, instanceId, transport, status }) => ({
    instanceName,
    instanceId,
    transport,
    status,
  }));

export function aGatewayOverOldData(service: () => SecondEdition): void {
  describe('a gateway over the data of the first edition', () => {
    let manifest: GatewayManifest;
    let call: GatewayCall;
    beforeAll(async () => {
      manifest = service().manifest.gateway;
      ({ call } = service());
      await service().startGateway();
    });
    const ownKey = (name: string): GatewayCall => {
      const token = manifest.instances.find((instance) => instance.name === name)?.token ?? '';
      return gatewayCall(service().gateway, token);
    };
    const messagesOf = async (instance: string, jid: string): Promise<Json[]> =>
      (await call('GET', `/inbox/api/instances/${instance}/chats/${jid}/messages`)).body;
    const isAt = (
      instance: string,
      { jid, id }: { jid: string; id: string },
      status: string,
    ): Promise<Json> =>
      until(
        `${id} to be at ${status}`,
        async () =>
          (await messagesOf(instance, jid)).find(
            (message) => message.key.id === id && message.status === status,
          ),
        PATIENCE_MS,
      );
    const send = (
      { instance, idempotencyKey, request }: KeyedSend,
      changes: object = {},
    ): Promise<GatewayAnswer> =>
      call(
        'POST',
        `/message/sendMessengerAudio/${instance}`,
        { ...request, ...changes },
        { 'Idempotency-Key': idempotencyKey },
      );
    const ofWebhooks = (instance: string) =>
      service().outside.hooks.calls.filter(({ json }) => json.instance === instance);

    it('has every instance on its network again, but for the one that was logged out', patience, async () => {
      await until(
        'all of them to be as they were',
        async () => {
          const { body } = await call('GET', '/instance/fetchInstances');
          return isDeepStrictEqual(asShownThen(body), manifest.shown);
        },
        PATIENCE_MS,
      );
    });

    it('knows their tokens, settings and webhooks, and who is signed in to the inbox', async () => {
      for (const { name, settings, webhook } of manifest.instances) {
        const own = ownKey(name);
        const { body } = await own('POST', `/settings/set/${name}`, {});
        expect(body.settings).toEqual({ instanceName: name, settings });
        expect((await own('GET', `/webhook/find/${name}`)).body).toEqual(webhook ? { webhook } : null);
      }
      const [one, other] = manifest.instances;
      const inbox = await fetch(`${service().gateway}/inbox/api/instances`, {
        headers: { Authorization: `Bearer ${manifest.inboxSession}` },
      });
      expect(inbox.status).toBe(200);
      const foreign = await ownKey(one?.name ?? '')('GET', `/instance/connectionState/${other?.name}`);
      expect(foreign.status).toBe(401);
    });

    it('has their messages: content, status, captions, and the media', async () => {
      for (const { instance, jid, messages } of manifest.history) {
        const kept = await messagesOf(instance, jid);
        for (const message of messages) expect(kept).toContainEqual(message);
      }
      const { jid, id } = manifest.messages.played;
      const played = await isAt('studio', { jid, id }, 'PLAYED');
      const { directPath, fileEncSha256, caption } = played.message.audioMessage;
      expect([caption, played.edited]).toEqual(['with a caption', true]);
      const media = await fetch(`${service().gateway}${directPath}`);
      const bytes = Buffer.from(await media.arrayBuffer());
      expect(createHash('sha256').update(bytes).digest('base64')).toBe(fileEncSha256);
    });

    it('knows whom they have blocked, and the groups that they are in', async () => {
      const { group, blockedJid, instances } = manifest;
      const contacts: Json[] = (await call('POST', '/chat/findContacts/studio', {})).body;
      expect(contacts.filter(({ blocked }) => blocked).map(({ id }) => id)).toEqual([blockedJid]);
      const query = `?groupJid=${group.jid}`;
      const { body } = await call('GET', `/group/inviteCode/studio${query}`);
      expect(body.inviteCode).toBe(group.inviteCode);
      const members: Json[] = (await call('GET', `/group/participants/studio${query}`)).body.participants;
      const cellar = instances.find(({ name }) => name === 'cellar');
      expect(members.map(({ id }) => id)).toContain(cellar?.ownJid);
    });

    it('answers a repeated send as it was answered, and refuses another under its key', async () => {
      const { replay, queued, refused } = manifest.idempotency;
      for (const sent of [replay, queued]) {
        const { status, headers, body } = await send(sent);
        expect([status, headers.get('idempotent-replayed')]).toEqual([200, 'true']);
        expect(body).toEqual(sent.answer);
        expect((await send(sent, { mentionsEveryOne: true })).body.code).toBe('idempotency_mismatch');
      }
      // What was refused is bound to its body, and tried again.
      expect((await send(refused, { number: ada.number })).body.code).toBe('idempotency_mismatch');
      expect((await send(refused)).body.code).toBe('unknown_recipient');
    });

    it('delivers what the loopback network had taken, once', patience, async () => {
      const { queued, ofAttic } = manifest.messages;
      await isAt('studio', queued, 'DELIVERY_ACK');
      for (const message of ofAttic) await isAt('attic', message, 'DELIVERY_ACK');
      const late = await until('what ada said late', async () => {
        const found = (await messagesOf('studio', ada.jid)).filter(
          ({ message }) => message.conversation === 'said late',
        );
        return found.length > 0 && found;
      });
      expect(late).toHaveLength(1);
    });

    it('keeps what is for somebody who is away until they come back', patience, async () => {
      const { waiting } = manifest.messages;
      const cellar = manifest.instances.find(({ name }) => name === 'cellar')?.ownJid ?? '';
      const studio = manifest.instances.find(({ name }) => name === 'studio')?.ownJid ?? '';
      const audio = service().outside.videos.url('talk.mp4');
      const { body } = await call('POST', '/message/sendMessengerAudio/studio', { number: cellar, audio });
      const next = { jid: cellar, id: body.key.id };
      for (const message of [waiting, next]) await isAt('studio', message, 'SERVER_ACK');
      expect(await messagesOf('cellar', studio)).toEqual([]);
      expect((await call('GET', '/instance/connect/cellar')).status).toBe(200);
      for (const message of [waiting, next]) await isAt('studio', message, 'DELIVERY_ACK');
      expect((await messagesOf('cellar', studio)).map(({ key }) => key.id)).toEqual([waiting.id, next.id]);
    });

    it('sends a message once that was cut off before its network had it', patience, async () => {
      const { cutOff } = manifest.idempotency;
      const { status, body } = await send(cutOff);
      expect([status, body.key.id]).toEqual([200, cutOff.messageId]);
      await isAt('studio', { jid: ada.jid, id: body.key.id }, 'DELIVERY_ACK');
    });

    it(
      'tells the webhooks of instances what they have not been told, once, and the first tries in order',
      patience,
      async () => {
        const { pending } = manifest.webhooks;
        const { hooks } = service().outside;
        await until(
          'all of them to be told',
          () => pending.every(({ id }) => hooks.calls.some((told) => told.id === id)),
          PATIENCE_MS,
        );
        for (const { id, envelope } of pending) {
          const calls = hooks.calls.filter((told) => told.id === id);
          expect(calls.map(({ json }) => json)).toEqual([envelope]);
          if (envelope.instance === 'studio') expect(calls[0]?.headers['x-shelf']).toBe('seven');
        }
        const isDelivered = new Set(manifest.webhooks.delivered);
        expect(hooks.calls.filter(({ id }) => isDelivered.has(id))).toEqual([]);
        // None of studio's was refused, so all of them are first tries.
        const ids = ofWebhooks('studio').map(({ id }) => id);
        expect(ids).toEqual(ids.toSorted(byEvent));
        expect(ids.length).toBeGreaterThan(pending.length);
      },
    );

    it('tells the API each status that it has not been told, once and in order', patience, async () => {
      const { relayed, alice } = service();
      const wanted = manifest.statuses;
      await until('all of them to be told', () => wanted.every((id) => relayed.includes(id)), PATIENCE_MS);
      expect(relayed).toEqual([...new Set(relayed)].toSorted(byEvent));
      expect(relayed.slice(0, wanted.length)).toEqual(wanted);
      const { jobId } = service().manifest.jobs.finished[0]?.job ?? {};
      const { body } = await alice.call('GET', `/v1/jobs/${jobId}`);
      expect(body.data.voiceMessage.messageStatus).toBe('PLAYED');
    });

    it('takes an account on XMPP up where it was: what came meanwhile arrives, once', patience, async () => {
      const textsOf = async (jid: string): Promise<string[]> =>
        (await messagesOf('courier', jid)).flatMap(({ message }) => message.conversation ?? []);
      await until(
        'what was said meanwhile',
        async () =>
          (await textsOf(adasJid)).includes('while nobody was there') &&
          (await textsOf(manifest.xmpp.room)).includes('in the room meanwhile'),
        PATIENCE_MS,
      );
      expect(await textsOf(adasJid)).toEqual(['good to hear you', 'while nobody was there']);
      expect(await textsOf(manifest.xmpp.room)).toEqual(['welcome', 'in the room meanwhile']);
    });

    it(
      'sends nothing again that an XMPP server had taken when the gateway was killed',
      patience,
      async () => {
        const { inDoubt } = manifest.idempotency;
        const peer = await service().xmppServer.ada(true);
        const { status, body } = await send(inDoubt);
        expect([status, body.key.id]).toEqual([200, inDoubt.messageId]);
        const after = (await send({ ...inDoubt, idempotencyKey: 'another' })).body.key.id;
        await peer.seen('the next message', ({ id }) => id === after);
        expect(peer.events.filter(({ file }) => file).map(({ id }) => id)).toEqual([after]);
      },
    );

    it('takes a WhatsApp account up with its session, address book and kept messages', patience, async () => {
      const { creds, messageId } = manifest.whatsapp;
      const { jid, number } = { jid: '4915100000001@s.whatsapp.net', number: '4915100000001' };
      const contacts: Json[] = (await call('POST', '/chat/findContacts/phone', {})).body;
      expect(contacts.find(({ id }) => id === jid)).toMatchObject({
        pushName: 'Ada Lovelace',
        isSaved: true,
      });
      const audio = service().outside.videos.url('talk.mp4');
      const quoted = { key: { id: messageId } };
      expect(
        (await call('POST', '/message/sendMessengerAudio/phone', { number, audio, quoted })).status,
      ).toBe(200);
      const events = (await readFile(service().whatsappLog, 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      const connected = events.filter(({ event }) => event === 'connected');
      expect(connected.map((event) => event.creds)).toEqual([creds]);
      expect(connected[0].keys).toEqual(JSON.parse(JSON.stringify(signalKeys, BufferJSON.replacer)));
      const [sent] = events.filter(({ event }) => event === 'sent');
      expect(sent.message.message.audioMessage.contextInfo).toMatchObject({
        stanzaId: messageId,
        quotedMessage: { audioMessage: { ptt: true } },
      });
    });
  });
}

/** `evt_<ms>-<counter>` */
function byEvent(one: string, other: string): number {
  const [oneMs = 0, oneCount = 0] = one.replace('evt_', '').split('-').map(Number);
  const [otherMs = 0, otherCount = 0] = other.replace('evt_', '').split('-').map(Number);
  return oneMs - otherMs || oneCount - otherCount;
}
