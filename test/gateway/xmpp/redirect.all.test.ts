// @module-tag prosody
// @module-tag slixmpp
/** A server that sends its clients elsewhere (RFC 6120 §4.9.3.19): the gateway goes there only where the guard lets it. */

import { startXmppSender } from 'soundpost-testing/misleading-servers';
import { DOMAIN } from 'soundpost-testing/prosody';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { numbers, startWorld, type World } from './xmpp-fixture.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world?.close());

// Broken by hand (packages/outbound/src/connector.ts): with `host` in place of 'checked.invalid' the forbidden server is connected to.
it.each(['127.0.0.1', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '2130706433', '0'])(
  'a forbidden address written %s gets no connection, and the instance says why',
  async (address) => {
    const forbidden = await startXmppSender(DOMAIN, () => '');
    const server = await startXmppSender(DOMAIN, () => `${address}:${forbidden.port}`);
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
  const server = await startXmppSender(DOMAIN, () => `127.0.0.1:${world.prosody.port}`);
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
