// @module-tag prosody
/** A server that refuses a query of which the library does not know yet that it is written. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { xml } from 'soundpost-chat-xmpp/element';
import { createGuardedClient } from 'soundpost-chat-xmpp/guarded-client';
import { DOMAIN } from 'soundpost-testing/prosody';
import { afterEach, expect, it } from 'vitest';

const STREAM = `<stream:stream xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams" from="${DOMAIN}" id="1" version="1.0">`;
const REFUSAL = `<iq type="error" id="early" from="${DOMAIN}"><error type="cancel"><item-not-found xmlns="urn:ietf:params:xml:ns:xmpp-stanzas"/></error></iq>`;
/** More than the sockets of both sides hold: the write goes on until the server reads. */
const QUERY_BYTES = 32 * 1024 * 1024;

const unheard: unknown[] = [];
const onUnheard = (error: unknown): void => void unheard.push(error);
afterEach(() => {
  process.off('unhandledRejection', onUnheard);
});

// Broken by hand (packages/chat-xmpp/src/guarded-client.ts): without catchEarlyErrors. A rejection that nobody hears ends a gateway.
it('refuses that query, and nobody is left with a rejection', async () => {
  process.on('unhandledRejection', onUnheard);
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.write(STREAM);
      socket.once('data', () => {
        socket.pause();
        socket.write(REFUSAL);
      });
    });
    socket.on('error', () => socket.destroy());
    client.once('stanza', () => setImmediate(() => socket.resume()));
  });
  const { client, open, cut } = createGuardedClient({
    local: 'somebody',
    domain: DOMAIN,
    password: 'a password',
    resource: 'here',
    deviceId: '123e4567-e89b-42d3-a456-426614174000',
    guard: { serviceAddresses: async () => ['127.0.0.1'] },
  });
  client.on('error', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await open({ directTls: false, hostname: '127.0.0.1', port: (server.address() as AddressInfo).port });
    const query = xml(
      'iq',
      { type: 'get', id: 'early' },
      xml('query', { xmlns: 'x' }, 'x'.repeat(QUERY_BYTES)),
    );
    await expect(client.iqCaller.request(query, 20_000)).rejects.toMatchObject({
      condition: 'item-not-found',
    });
    expect(unheard).toEqual([]);
  } finally {
    cut();
    server.close();
    await once(server, 'close');
  }
});
