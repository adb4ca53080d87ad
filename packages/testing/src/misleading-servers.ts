/**
 * Servers on loopback that send whoever asks them elsewhere: over HTTP (RFC 9110 §15.4) and XMPP
 * (RFC 6120 §4.9.3.19).
 */
import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net';

export interface Redirector {
  readonly port: number;
  /** The address that is redirected to `url`, of any form. */
  to(url: string): string;
  close(): void;
}

export async function startRedirector(): Promise<Redirector> {
  const server = createHttp((request, response) => {
    const location = Buffer.from(request.url?.slice(1) ?? '', 'base64url');
    response.writeHead(302, { location: location.toString('latin1') }).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    to: (url) => `http://127.0.0.1:${port}/${Buffer.from(url).toString('base64url')}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

export interface XmppSender {
  readonly port: number;
  readonly connections: number;
  close(): Promise<void>;
}

/** Sends each client to what `elsewhere` names: `host:port`. */
export async function startXmppSender(domain: string, elsewhere: () => string): Promise<XmppSender> {
  let connections = 0;
  const open = new Set<Socket>();
  const server = createTcp((socket) => {
    connections++;
    open.add(socket.on('close', () => open.delete(socket)).on('error', () => socket.destroy()));
    socket.once('data', () =>
      socket.end(
        `<stream:stream xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams" from="${domain}" id="1" version="1.0">` +
          `<stream:error><see-other-host xmlns="urn:ietf:params:xml:ns:xmpp-streams">${elsewhere()}</see-other-host></stream:error></stream:stream>`,
      ),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
