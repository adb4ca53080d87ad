import type { Session } from 'soundpost-chat/transport';
import type { disconnectReason } from 'soundpost-chat-whatsapp/disconnect-reasons';
import { disconnectReasons } from 'soundpost-chat-whatsapp/disconnect-reasons';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { adasChat, OWN_NUMBER, type Setting, startSetting, useSettings } from './whatsapp-fixture.ts';

const error429 = { tag: 'error', attrs: { code: '429', text: 'rate-overlimit' } };
const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

useSettings();

let setting: Setting;
beforeEach(async () => {
  setting = await startSetting();
});
afterEach(() => setting.close());

describe('the connection of the WhatsApp transport, against a typed fake socket', () => {
  describe('pairing', () => {
    it('begins only when somebody connects', async () => {
      const session = await setting.session();
      expect(session.state()).toBe('close');
      expect(session.pairing()).toBeUndefined();
      expect(session.ownJid).toBe('');
      expect(setting.network.sockets).toHaveLength(0);
    });

    it('shows a picture of the code that the phone has to see', async () => {
      const session = await setting.session();
      await session.connect();
      const first = session.pairing();
      expect(first).toMatchObject({ pairingCode: null, count: 1 });
      expect(first?.code).toMatch(/#2@/);
      const [head, base64 = ''] = first?.base64.split(',') ?? [];
      expect(head).toBe('data:image/png;base64');
      expect(Buffer.from(base64, 'base64').subarray(0, 8)).toEqual(PNG_SIGNATURE);
      expect(session.state()).toBe('connecting');
    });

    it('replaces the picture when WhatsApp does, and counts', async () => {
      const session = await setting.session();
      await session.connect();
      const first = session.pairing();
      const code = setting.network.socket.showQr();
      expect(session.pairing()).toMatchObject({ code, count: 2 });
      expect(session.pairing()?.base64).not.toBe(first?.base64);
      expect(setting.reported.codes).toEqual([first?.code, code]);
    });

    it('answers the same picture to whoever connects meanwhile', async () => {
      const session = await setting.session();
      await session.connect();
      const first = session.pairing();
      await session.connect();
      expect(session.pairing()).toEqual(first);
      expect(setting.network.sockets).toHaveLength(1);
    });

    it('asks for a code to type when a number is given', async () => {
      const session = await setting.session();
      await session.connect(OWN_NUMBER);
      expect(session.pairing()).toMatchObject({ pairingCode: 'ABCD1234', count: 1 });
      expect(setting.network.socket.callsOf('requestPairingCode')).toEqual([[OWN_NUMBER]]);
      setting.network.socket.showQr();
      expect(session.pairing()).toMatchObject({ pairingCode: 'ABCD1234', count: 2 });
    });

    it('asks for the code as well when the number comes later', async () => {
      const session = await setting.session();
      await session.connect();
      await session.connect(OWN_NUMBER);
      expect(session.pairing()).toMatchObject({ pairingCode: 'ABCD1234', count: 1 });
    });

    it('asks once for one number, however often somebody connects with it', async () => {
      const session = await setting.session();
      await session.connect(OWN_NUMBER);
      await Promise.all([session.connect(OWN_NUMBER), session.connect(OWN_NUMBER)]);
      expect(setting.network.socket.callsOf('requestPairingCode')).toHaveLength(1);
    });

    it.each([
      ['refuses it', { attrs: { type: 'error' }, content: [error429] }, '429 rate-overlimit'],
      ['does not answer', undefined, 'no answer'],
    ])(
      'gives out no code if the server %s, but the picture, and asks again later',
      async (_, answer, why) => {
        const session = await setting.session();
        setting.network.pairingAnswer = answer;
        await expect(session.connect(OWN_NUMBER)).rejects.toMatchObject({
          code: 'network_refused',
          messages: [
            expect.stringContaining(`number: WhatsApp gave no pairing code for this number (${why})`),
          ],
        });
        await session.connect();
        expect(session.pairing()).toMatchObject({ pairingCode: null, count: 1 });
        setting.network.pairingAnswer = { attrs: { type: 'result' } };
        await session.connect(OWN_NUMBER);
        expect(session.pairing()).toMatchObject({ pairingCode: 'ABCD1234' });
      },
    );

    describe('when WhatsApp retires the secret of the picture', () => {
      const secretOf = (session: Session): string | undefined => session.pairing?.()?.code.split(',').at(-2);
      const refOf = (session: Session): string | undefined => session.pairing?.()?.code.split(',')[0];

      it('shows the same ref with a new secret, each time, and Baileys’ next pictures too', async () => {
        const session = await setting.session();
        await session.connect();
        const { socket } = setting.network;
        const secrets = [secretOf(session)];
        const ref = refOf(session);
        socket.retirePicture();
        secrets.push(secretOf(session));
        socket.retirePicture();
        secrets.push(secretOf(session));
        expect(new Set(secrets).size).toBe(3);
        expect(refOf(session)).toBe(ref);
        socket.showQr();
        expect(refOf(session)).not.toBe(ref);
        expect(secretOf(session)).toBe(secrets[2]);
        expect(session.pairing()?.count).toBe(4);
        // By this one Baileys checks what the phone signs.
        expect(socket.config.auth.creds.advSecretKey).toBe(secrets[2]);
      });

      it('before the first picture is shown, that one has the new secret', async () => {
        const session = await setting.session();
        const connected = session.connect();
        const socket = await setting.network.nextSocket();
        const { advSecretKey } = socket.config.auth.creds;
        socket.retirePicture();
        await connected;
        expect(secretOf(session)).not.toBe(advSecretKey);
        expect(secretOf(session)).toBe(socket.config.auth.creds.advSecretKey);
      });

      it('after the phone has scanned one or taken a code, keeps what both know', async () => {
        const session = await setting.session();
        await session.connect();
        const { socket } = setting.network;
        // As Baileys sets it when a code was typed.
        socket.config.auth.creds.advSecretKey = 'agreed';
        socket.retirePicture();
        expect(socket.config.auth.creds.advSecretKey).toBe('agreed');
        socket.scan(OWN_NUMBER);
        await until('the session is open', () => session.state() === 'open');
        const { creds } = setting.network.socket.config.auth;
        setting.network.socket.retirePicture();
        expect(creds.advSecretKey).toBe('agreed');
        expect(session.pairing()).toBeUndefined();
      });
    });

    it('connects again as the new device, at once, and is open', async () => {
      const session = await setting.openSession();
      expect(session.pairing()).toBeUndefined();
      expect(session.ownJid).toBe(`${OWN_NUMBER}@s.whatsapp.net`);
      expect(setting.network.sockets).toHaveLength(2);
      expect(setting.retries).toEqual([]);
      expect(setting.reported.connections).toEqual(['connecting', 'open']);
    });

    it('gives up when nobody scans, and begins anew when somebody connects', async () => {
      const session = await setting.session();
      await session.connect(OWN_NUMBER);
      setting.network.socket.drop(408);
      await until('it is closed', () => session.state() === 'close');
      expect(session.pairing()).toBeUndefined();
      expect(setting.reported.connections.at(-1)).toBe(
        'close: not paired: the connection was lost, or timed out',
      );
      // The picture, then with the code to type, then that nobody used them.
      expect(setting.reported.codes).toEqual([expect.any(String), expect.any(String), undefined]);
      await session.connect();
      expect(session.pairing()).toMatchObject({ pairingCode: null, count: 1 });
      // What the pairing code had left in the credentials would make Baileys log in instead of pairing.
      expect(setting.network.socket.config.auth.creds.me).toBeUndefined();
    });
  });

  describe('when it ends', () => {
    const expected = ({ consequence }: ReturnType<typeof disconnectReason>): string =>
      consequence === 'retry' || consequence === 'restart' ? 'open' : 'close';

    /** The first of each consequence: the others of the table do the same. */
    const kinds = disconnectReasons.filter(
      ({ consequence }, nth) => disconnectReasons.findIndex((one) => one.consequence === consequence) === nth,
    );

    it.each(kinds.map((reason) => [reason.code, reason.name, reason] as const))(
      'with %d %s it does what the table says',
      async (code, _name, reason) => {
        const session = await setting.openSession();
        const before = setting.network.sockets.length;
        setting.network.socket.drop(code);
        await until(
          'it has come to rest',
          () => setting.reported.connections.length > 2 && session.state() === expected(reason),
        );
        const again = setting.network.sockets.length - before;
        const stored = await setting.redis.hexists(
          `{soundpost}:gateway:whatsapp:${setting.instance.id}:session`,
          'credentials',
        );
        expect({ again, stored, retries: setting.retries }).toEqual(
          {
            retry: { again: 1, stored: 1, retries: [1] },
            restart: { again: 1, stored: 1, retries: [] },
            // WhatsApp's page cannot be reached here.
            renew: { again: 0, stored: 1, retries: [] },
            stay: { again: 0, stored: 1, retries: [] },
            forget: { again: 0, stored: 0, retries: [] },
          }[reason.consequence],
        );
        if (expected(reason) === 'close') {
          expect(setting.reported.connections.at(-1)).toBe(`close: ${reason.meaning}`);
        }
      },
    );

    it('with 405 it connects again by the version that WhatsApp’s page names, and stays away where that is refused too', async () => {
      const session = await setting.openSession();
      setting.network.latestVersion = [2, 3000, 1_099_000_000];
      setting.network.socket.drop(405);
      await until(
        'it is open again',
        () => session.state() === 'open' && setting.network.sockets.length === 3,
      );
      expect(setting.network.socket.config.version).toEqual([2, 3000, 1_099_000_000]);
      expect(setting.retries).toEqual([]);
      setting.network.socket.drop(405);
      await until('it stays away', () => session.state() === 'close');
      expect(setting.reported.connections.at(-1)).toMatch(/WHATSAPP_VERSION/);
    });

    it('with 405 it does not go by the page where the operator has set a version', async () => {
      const version = [2, 3000, 1_098_000_000] as const;
      const set = await startSetting({}, [...version]);
      const session = await set.openSession();
      expect(set.network.socket.config.version).toEqual(version);
      set.network.latestVersion = [2, 3000, 1_099_000_000];
      set.network.socket.drop(405);
      await until('it stays away', () => session.state() === 'close');
      await set.close();
    });

    it.each([[undefined], [599]])(
      'with the unknown code %s it connects again and keeps the session',
      async (code) => {
        const session = await setting.openSession();
        setting.network.socket.drop(code);
        await until('it is open again', () => setting.retries.length === 1 && session.state() === 'open');
      },
    );

    it('waits longer from attempt to attempt, until one succeeds', async () => {
      const session = await setting.openSession();
      const breakOff = async (): Promise<void> => {
        const next = setting.network.nextSocket();
        setting.network.socket.drop(428);
        (await next).open = () => undefined;
      };
      // Both sockets of the pairing have been handed out to nobody.
      await setting.network.nextSocket();
      await setting.network.nextSocket();
      await breakOff();
      await breakOff();
      await breakOff();
      expect(setting.retries).toEqual([1, 2, 3]);
      expect(session.state()).toBe('connecting');
      setting.network.socket.emit({ 'connection.update': { connection: 'open' } });
      expect(session.state()).toBe('open');
      setting.network.socket.drop(428);
      await until('it is open', () => setting.retries.length === 4 && session.state() === 'open');
      expect(setting.retries).toEqual([1, 2, 3, 1]);
    });

    it('refuses what needs it meanwhile', async () => {
      const session = await setting.openSession();
      setting.network.socket.drop(440);
      await until('it is closed', () => session.state() === 'close');
      await expect(session.privacySettings()).rejects.toMatchObject({ code: 'not_connected' });
    });

    it('comes back when somebody connects after another process had the session', async () => {
      const session = await setting.openSession();
      setting.network.socket.drop(440);
      await until('it is closed', () => session.state() === 'close');
      await session.connect();
      expect(session.state()).toBe('open');
      expect(session.pairing()).toBeUndefined();
    });
  });

  describe('over a restart of the gateway', () => {
    it('comes back as the same device without pairing', async () => {
      await setting.openSession();
      const { creds } = setting.network.socket.config.auth;
      await setting.restart();
      const session = await setting.session();
      expect(session.ownJid).toBe(`${OWN_NUMBER}@s.whatsapp.net`);
      await until('it is open', () => session.state() === 'open');
      expect(setting.network.socket.config.auth.creds).toEqual(creds);
    });

    it('stays away when it was logged out', async () => {
      await setting.openSession();
      await setting.restart();
      const sockets = setting.network.sockets.length;
      const session = await setting.open(false);
      expect(session.state()).toBe('close');
      expect(setting.network.sockets).toHaveLength(sockets);
    });

    it('does not connect any more when the gateway stops before it could', async () => {
      await setting.openSession();
      await setting.restart();
      const before = setting.network.sockets.length;
      const session = await setting.open(false);
      const connecting = session.connect();
      await setting.transport().close();
      await connecting;
      expect(setting.network.sockets).toHaveLength(before);
      expect(session.state()).toBe('close');
      // Within less than what connecting may take: 20 s.
    }, 18_000);

    it('says nothing more once another process has the lease, and leaves the session to it', async () => {
      const session = await setting.openSession();
      const { sent, sockets } = setting.network;
      setting.lease().lose();
      const text = { messageId: '3EB0000000000000000B', chat: adasChat, text: 'too late' };
      await expect(session.sendText(text, AbortSignal.timeout(5000))).rejects.toMatchObject({
        code: 'standby',
      });
      await setting.transport().close();
      expect(sent).toEqual([]);
      expect(session.state()).toBe('close');
      const before = sockets.length;
      await setting.restart();
      const next = await setting.session();
      await until('the next one to be open', () => next.state() === 'open');
      expect(sockets).toHaveLength(before + 1);
      await next.sendText(text, AbortSignal.timeout(5000));
      expect(sent).toHaveLength(1);
    });

    it('ends its connection when the gateway stops, and does not connect again', async () => {
      const session = await setting.openSession();
      const { socket, sockets } = setting.network;
      const before = sockets.length;
      await setting.restart();
      expect(socket.ended).toBe(true);
      expect(session.state()).toBe('close');
      expect(setting.network.sockets).toHaveLength(before);
    });
  });

  describe('logging out', () => {
    it('takes the device off the account and forgets everything of it', async () => {
      const session = await setting.openSession();
      const { socket } = setting.network;
      await session.logout();
      expect(socket.callsOf('logout')).toHaveLength(1);
      expect(session.state()).toBe('close');
      expect(session.ownJid).toBe('');
      expect(await setting.redis.keys(`*${setting.instance.id}*`)).toEqual([]);
      await session.connect();
      expect(session.pairing()).toMatchObject({ count: 1 });
    });

    it('removing an instance leaves nothing behind', async () => {
      await setting.openSession();
      await setting.transport().remove(setting.instance);
      expect(await setting.redis.keys(`*${setting.instance.id}*`)).toEqual([]);
    });
  });
});
