/** A server that sends its clients elsewhere (RFC 6120 §4.9.3.19): the gateway goes there only where the guard lets it. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DOMAIN } from '../../prosody.ts';
import { numbers, startWorld, type World } from './xmpp-fixture.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world?.close());

interface Listening {
  readonly port: number;
  readonly connections: number;
  close(): Promise<void>;
}

async function listen(answer: (socket: Socket) => void): Promise<Listening> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on('error', () => socket.destroy());
    answer(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    close: async () => void (await once(server.close(), 'close')),
  };
}

const sendTo = (elsewhere: string): Promise<Listening> =>
  listen((socket) => {
    socket.once('data', () =>
      socket.end(
        `<stream:stream xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams" from="${DOMAIN}" id="1" version="1.0">` +
          `<stream:error><see-other-host xmlns="urn:ietf:params:xml:ns:xmpp-streams">${elsewhere}</see-other-host></stream:error></stream:stream>`,
      ),
    );
  });

// Broken by hand (src/outbound/connector.ts): with `host` in place of 'checked.invalid' the forbidden server is connected to.
it.each(['127.0.0.1', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '2130706433', '0'])(
  'a forbidden address written %s gets no connection, and the instance says why',
  async (address) => {
    const forbidden = await listen((socket) => socket.destroy());
    const server = await sendTo(`${address}:${forbidden.port}`);
    const sent = await world.connect({ port: server.port, waitUntilOpen: false });
    const report = await sent.reported(
      'the end',
      (candidate) => candidate.kind === 'connection' && candidate.state === 'close',
    );
    expect(report).toMatchObject({ reason: expect.stringContaining('OUTBOUND_ALLOW') });
    expect([server.connections, forbidden.connections]).toEqual([1, 0]);
    await Promise.all([server.close(), forbidden.close()]);
  },
);

it('an allowed address gets the connection, once', async () => {
  const server = await sendTo(`127.0.0.1:${world.prosody.port}`);
  const sent = await world.connect({ port: server.port });
  const peer = await world.peer(numbers.ada);
  for (let nth = 0; nth < 10; nth++) {
    await sent.text(numbers.ada, `message ${nth}`);
    await peer.do('round_trip');
  }
  expect(sent.session.state()).toBe('open');
  expect(server.connections).toBe(1);
  await server.close();
});
