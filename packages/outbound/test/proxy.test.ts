/** The way out through a forward proxy: what it is asked for, what its answers mean, and what does not go through it. */
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { PUBLIC_ADDRESS } from 'soundpost-testing/stub-network';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseAllowRules } from '../src/allow-rules.ts';
import { createOutbound, type Outbound } from '../src/outbound.ts';

const CONTENT = 'what lies at the address';
/** Public too; nothing is ever sent to it. */
const OTHER_ADDRESS = '93.184.215.15';

let folder = '';
let source: Server;
let proxy: Server;
let asked: IncomingMessage[];
let outbound: Outbound;
/** What the proxy answers, by the address that it is asked for; 200 leads to the source. */
let answers: Record<string, number>;
/** The port that it leads to. */
let led = 0;

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
async function listen(server: Server): Promise<Server> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'outbound-proxy-'));
  asked = [];
  answers = {};
  source = await listen(
    createServer((_request, response) =>
      response.writeHead(200, { 'content-length': CONTENT.length }).end(CONTENT),
    ),
  );
  led = portOf(source);
  proxy = await listen(
    createServer().on('connect', (request: IncomingMessage, client: Socket) => {
      asked.push(request);
      const status = answers[request.url?.split(':')[0] ?? ''] ?? 200;
      if (status !== 200) return client.end(`HTTP/1.1 ${status} No\r\n\r\n`);
      const server = connect(led, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 Connected\r\n\r\n');
        server.pipe(client).pipe(server);
      });
      for (const [one, other] of [
        [server, client],
        [client, server],
      ] as const)
        one.on('error', () => other.destroy());
      return undefined;
    }),
  );
  outbound = createOutbound({
    allow: parseAllowRules(`127.0.0.1:${portOf(source)}`),
    ports: [80, 443],
    proxy: new URL(`http://us%40er:pass@127.0.0.1:${portOf(proxy)}`),
    userAgent: 'Soundpost test',
    logger: pino({ level: 'silent' }),
    resolve: async (name) =>
      name === 'two.example'
        ? [PUBLIC_ADDRESS, OTHER_ADDRESS]
        : name === 'inside.example'
          ? ['10.0.0.1']
          : [PUBLIC_ADDRESS],
  });
});
afterEach(async () => {
  await outbound.close();
  for (const server of [source, proxy]) {
    server.closeAllConnections();
    server.close();
  }
  await rm(folder, { recursive: true });
});

const fetched = async (url: string): Promise<string> => {
  const file = join(folder, 'file');
  await outbound.download({ url, file, maxBytes: 1000, limits: { tries: 1 } });
  const text = await readFile(file, 'utf8');
  await rm(file);
  return text;
};

it('is asked for the checked address, with its credentials, and the request is that of the name', async () => {
  const names: (string | undefined)[] = [];
  source.prependListener('request', ({ headers }) => names.push(headers.host));
  expect(await fetched('http://media.example/talk.mp4')).toBe(CONTENT);
  expect(asked.map(({ url }) => url)).toEqual([`${PUBLIC_ADDRESS}:80`]);
  const credentials = asked[0]?.headers['proxy-authorization']?.replace('Basic ', '') ?? '';
  expect(Buffer.from(credentials, 'base64').toString()).toBe('us@er:pass');
  expect(names).toEqual(['media.example']);
});

it('is not asked for what a rule opens, nor for what the guard refuses', async () => {
  expect(await fetched(`http://127.0.0.1:${portOf(source)}/talk.mp4`)).toBe(CONTENT);
  await expect(fetched('http://inside.example/talk.mp4')).rejects.toMatchObject({ name: 'OutboundRefused' });
  expect(asked).toEqual([]);
});

it('is asked for the next address when it does not reach the first', async () => {
  answers[PUBLIC_ADDRESS] = 502;
  expect(await fetched('http://two.example/talk.mp4')).toBe(CONTENT);
  expect(asked.map(({ url }) => url)).toEqual([`${PUBLIC_ADDRESS}:80`, `${OTHER_ADDRESS}:80`]);
});

it.each([
  [407, { name: 'OutboundRefused', reason: 'the proxy answered 407' }],
  [403, { name: 'OutboundRefused', reason: 'the proxy answered 403' }],
  [503, { name: 'OutboundFailed', kind: 'connect', retryable: true }],
])('that answers %i: %j', async (status, expected) => {
  answers[PUBLIC_ADDRESS] = status;
  await expect(fetched('http://media.example/talk.mp4')).rejects.toMatchObject(expected);
});

it('that is away is a server that could not be reached', async () => {
  proxy.close();
  proxy.closeAllConnections();
  await expect(fetched('http://media.example/talk.mp4')).rejects.toMatchObject({
    name: 'OutboundFailed',
    kind: 'connect',
    message: 'the server could not be reached',
  });
});

it('carries TLS with the name that was asked for, and trusts no other certificate', async () => {
  const fixture = (name: string): Promise<Buffer> => readFile(join(import.meta.dirname, 'fixtures', name));
  const [cert, key] = await Promise.all([fixture('media.example.crt'), fixture('media.example.key')]);
  const names: unknown[] = [];
  const selfSigned = await listen(
    createTlsServer({
      cert,
      key,
      SNICallback: (name, done) => {
        names.push(name);
        done(null);
      },
    }),
  );
  led = portOf(selfSigned);
  await expect(fetched('https://media.example/talk.mp4')).rejects.toMatchObject({
    name: 'OutboundFailed',
    kind: 'tls',
  });
  selfSigned.close();
  expect(names).toEqual(['media.example']);
  expect(asked.map(({ url }) => url)).toEqual([`${PUBLIC_ADDRESS}:443`]);
});
