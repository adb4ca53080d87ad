import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PUBLIC_ADDRESS, type StubNetwork, stubNetwork } from 'soundpost-testing/stub-network';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OutboundFailed, OutboundRefused } from '../src/errors.ts';
import { type HostileServer, httpServer } from './hostile-server.ts';

const OTHER_ADDRESS = '93.184.215.15';

let folder: string;
let server: HostileServer;
let network: StubNetwork;

/**
 * One real server plays every public server: `/to?URL` redirects there (TAB and LONG stand for what a request cannot
 * carry), `/end` answers, `/cut` breaks off once.
 */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'outbound-'));
  server = await httpServer((request, response, nth) => {
    const [path, query = ''] = (request.url ?? '').split(/\?(.*)/s);
    const location = query.replace('TAB', '\t').replace('LONG', 'a'.repeat(3_000));
    const status = Number(/^\/to(\d{3})?$/.exec(path ?? '')?.[1] ?? 302);
    if (path?.startsWith('/to')) return response.writeHead(status, { location }).end('moved');
    if (path === '/cut' && nth === 1) {
      response.writeHead(200, { etag: '"1"', 'content-length': 10 }).write('first', () => response.destroy());
      return;
    }
    return response.end('the end');
  });
});
afterEach(async () => {
  await network.outbound.close();
  await server.close();
  await rm(folder, { recursive: true });
});

function useNetwork(names: Parameters<typeof stubNetwork>[0] = {}): void {
  network = stubNetwork({ serverPort: server.port, ...names });
}

function downloadOf(url: string): Promise<unknown> {
  return network.outbound.download({
    url,
    file: join(folder, 'source'),
    maxBytes: 1_000,
    limits: { backoffMs: 1 },
  });
}

function hosts(): string[] {
  return network.connections.map(({ hostname }) => hostname);
}

describe('a source that redirects', () => {
  test.each([
    ['to loopback', 'http://127.0.0.1/'],
    ['to loopback in hex', 'http://0x7f.1/'],
    ['to loopback over IPv6', 'http://[::1]/'],
    ['to a mapped address', 'http://[::ffff:10.0.0.1]/'],
    ['to cloud metadata', 'http://169.254.169.254/latest/meta-data/'],
    ['without a scheme, to loopback', '//127.0.0.1/end'],
    ['to a local name', 'http://localhost/'],
    ['to a name with a private address', 'http://private.example/end'],
    ['to a name with one private address among public ones', 'http://mixed.example/end'],
    ['to a file', 'file:///etc/passwd'],
    ['to data', 'data:text/plain,hello'],
    ['with credentials', 'http://user:secret@second.example/end'],
    ['to the port of a database', 'http://second.example:6379/'],
    ['to white space', 'http://second.example/aTABb'],
    ['to a URL of 3,000 characters', 'http://second.example/LONG'],
    ['to nonsense', 'http://'],
  ])('%s is refused and nothing else is connected to', async (_what, location) => {
    useNetwork({
      names: { 'private.example': ['192.168.1.1'], 'mixed.example': [PUBLIC_ADDRESS, '10.0.0.1'] },
    });
    await expect(downloadOf(`http://first.example/to?${location}`)).rejects.toBeInstanceOf(OutboundRefused);
    expect(hosts()).toEqual(['first.example']);
    expect(server.requests).toHaveLength(1);
    expect(await readdir(folder)).toEqual([]);
  });

  test.each([301, 302, 303, 307, 308])('is checked again for status %i', async (status) => {
    useNetwork();
    const refused = downloadOf(`http://first.example/to${status}?http://127.0.0.1/`);
    await expect(refused).rejects.toBeInstanceOf(OutboundRefused);
    await downloadOf(`http://first.example/to${status}?http://second.example/end`);
    expect(hosts()).toEqual(['first.example', 'first.example', 'second.example']);
  });

  test('from https to http is refused', async () => {
    useNetwork();
    const attempt = downloadOf('https://first.example/to?http://second.example/end');
    await expect(attempt).rejects.toBeInstanceOf(OutboundRefused);
    expect(network.refusals).toEqual(['redirect from https to http']);
    expect(hosts()).toEqual(['first.example']);
  });

  test('from http to https is followed', async () => {
    useNetwork();
    await downloadOf('http://first.example/to?https://second.example/end');
    expect(network.connections.map(({ protocol }) => protocol)).toEqual(['http:', 'https:']);
  });

  test('to a path on the same server is followed', async () => {
    useNetwork();
    await downloadOf('http://first.example/to?/end');
    expect(await readFile(join(folder, 'source'), 'utf8')).toBe('the end');
    expect(hosts()).toEqual(['first.example', 'first.example']);
  });

  test('five times is followed, six times is not', async () => {
    useNetwork();
    const redirects = (count: number) => `http://first.example${'/to?'.repeat(count)}/end`;
    await downloadOf(redirects(5));
    expect(server.requests).toHaveLength(6);
    await rm(join(folder, 'source'));
    await expect(downloadOf(redirects(6))).rejects.toMatchObject({ kind: 'redirects', retryable: false });
    expect(server.requests).toHaveLength(12);
  });

  test('to itself for ever is given up', async () => {
    server.requests.length = 0;
    useNetwork();
    const loop = 'http://first.example/to?'.repeat(60);
    await expect(downloadOf(loop)).rejects.toMatchObject({ kind: 'redirects' });
    expect(server.requests).toHaveLength(6);
  });

  test('to a private address at the third hop is refused there', async () => {
    useNetwork();
    const hops = 'http://one.example/to?http://two.example/to?http://three.example/to?http://10.0.0.1/';
    await expect(downloadOf(hops)).rejects.toBeInstanceOf(OutboundRefused);
    expect(hosts()).toEqual(['one.example', 'two.example', 'three.example']);
  });

  test('to another origin tells it nothing but what every server is told', async () => {
    useNetwork();
    await downloadOf('http://first.example/to?http://second.example/end');
    expect(server.requests[1]?.headers).toEqual({
      host: 'second.example',
      connection: 'close',
      accept: '*/*',
      'accept-encoding': 'identity',
      'user-agent': 'Soundpost test',
    });
  });
});

describe('a name that changes its answer', () => {
  test('between submission and download is refused at download', async () => {
    useNetwork({ names: { 'rebind.example': [[PUBLIC_ADDRESS], ['127.0.0.1']] } });
    await network.outbound.checkUrl('http://rebind.example/end', 'source');
    await expect(downloadOf('http://rebind.example/end')).rejects.toBeInstanceOf(OutboundRefused);
    expect(network.connections).toEqual([]);
  });

  test('after the check at connect gains nothing: the checked address is connected to', async () => {
    useNetwork({ names: { 'rebind.example': [[PUBLIC_ADDRESS], ['127.0.0.1']] } });
    await downloadOf('http://rebind.example/end');
    expect(network.lookups).toEqual(['rebind.example']);
    expect(network.connections.map(({ addresses }) => addresses)).toEqual([[PUBLIC_ADDRESS]]);
  });

  test('between two hops of a redirect is refused at the second', async () => {
    useNetwork({ names: { 'rebind.example': [[PUBLIC_ADDRESS], ['10.0.0.1']] } });
    const attempt = downloadOf('http://rebind.example/to?http://rebind.example/end');
    await expect(attempt).rejects.toBeInstanceOf(OutboundRefused);
    expect(hosts()).toEqual(['rebind.example']);
  });

  test('between two tries of a download is refused at the second', async () => {
    useNetwork({ names: { 'rebind.example': [[PUBLIC_ADDRESS], ['10.0.0.1']] } });
    await expect(downloadOf('http://rebind.example/cut')).rejects.toBeInstanceOf(OutboundRefused);
    expect(hosts()).toEqual(['rebind.example']);
    expect(await readdir(folder)).toEqual([]);
  });

  test('from one public address to another is followed', async () => {
    useNetwork({ names: { 'moves.example': [[PUBLIC_ADDRESS], [OTHER_ADDRESS]] } });
    await downloadOf('http://moves.example/to?http://moves.example/end');
    expect(network.connections.map(({ addresses }) => addresses)).toEqual([
      [PUBLIC_ADDRESS],
      [OTHER_ADDRESS],
    ]);
  });

  test('between the submission and the delivery of a webhook is refused at delivery', async () => {
    useNetwork({ names: { 'rebind.example': [[PUBLIC_ADDRESS], ['127.0.0.1']] } });
    await network.outbound.checkUrl('https://rebind.example/end', 'webhook');
    await expect(deliver('https://rebind.example/end')).rejects.toBeInstanceOf(OutboundRefused);
    expect(network.connections).toEqual([]);
  });

  test('between two deliveries of a webhook is refused at the second connection', async () => {
    useNetwork({ names: { 'rebind.example': [[PUBLIC_ADDRESS], ['127.0.0.1']] } });
    await deliver('https://rebind.example/end');
    await expect(deliver('https://rebind.example:8443/end')).rejects.toBeInstanceOf(OutboundRefused);
    expect(network.connections.map(({ addresses }) => addresses)).toEqual([[PUBLIC_ADDRESS]]);
  });
});

describe('a webhook that redirects', () => {
  test.each([
    ['to loopback', 'http://127.0.0.1/'],
    ['to cloud metadata', 'http://169.254.169.254/latest/meta-data/'],
    ['to another public server', 'https://second.example/end'],
    ['to a path of its own', '/end'],
  ])('%s is not followed', async (_what, location) => {
    useNetwork();
    for (const status of [301, 302, 303, 307, 308]) {
      expect(await deliver(`https://first.example/to${status}?${location}`)).toMatchObject({ status });
    }
    expect(new Set(hosts())).toEqual(new Set(['first.example']));
    expect(server.requests).toHaveLength(5);
  });
});

function deliver(url: string): Promise<unknown> {
  return network.outbound.post({ url, headers: {}, body: '{}', timeoutMs: 5_000 });
}

test('a name without an answer passes at submission and fails at download', async () => {
  useNetwork({ names: { 'gone.example': [[]] } });
  await network.outbound.checkUrl('http://gone.example/end', 'source');
  const error = await downloadOf('http://gone.example/end').catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OutboundFailed);
  expect(error).toMatchObject({ kind: 'dns', retryable: false });
  expect(network.connections).toEqual([]);
});
