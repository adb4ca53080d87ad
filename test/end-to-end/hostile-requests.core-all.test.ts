/**
 * Requests that no client would make, on raw connections to a real process with the limits it has in production: each gets the
 * right code or a closed connection, memory stays bounded, and somebody else is served all the while.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { bestMs } from 'soundpost-testing/best-ms';
import { currentRun } from 'soundpost-testing/by-run';
import { Client, type Json } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { ServiceHome, type Serving } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawConnection } from '../../packages/kit/test/http/raw-request.ts';
import { routes } from '../../src/api/app.ts';
import { mountedRoutes } from '../gateway/mounted-routes.ts';
import { useVideos } from './videos.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const GATEWAY_KEY = 'the-gateway-key-of-these-tests';
/** How much more memory the process, API, gateway and worker in one, may take at the worst moment of a test. */
const MAX_GROWTH_MIB = 256;
/** The slowest answer to somebody else; on an idle machine it is some milliseconds. */
const MAX_WAIT_MS = 5000;

const videos = useVideos();
let home: ServiceHome;
let serving: Serving;
let client: Client;

beforeAll(async () => {
  home = await ServiceHome.make({ GATEWAY_API_KEY: GATEWAY_KEY });
  serving = await home.serve();
  client = new Client(serving.api, home.key);
  // What only the first requests cost is paid before anything is measured.
  if (currentRun === 'all')
    for (let round = 0; round < 20; round += 1) await meanwhile(async () => undefined);
});
afterAll(() => home.remove());

const servers = ['api', 'gateway'] as const;
type Server = (typeof servers)[number];

const keyHeader = { api: () => `X-API-Key: ${home.key}`, gateway: () => `apikey: ${GATEWAY_KEY}` };
const postPath = { api: '/v1/extract', gateway: '/message/sendMessengerAudio/main' };
const statusPath = { api: '/v1/usage', gateway: '/instance/connectionState/main' };

const head = (server: Server, method: string, path: string, ...headers: string[]): string =>
  [`${method} ${path} HTTP/1.1`, 'Host: x', keyHeader[server](), ...headers, '', ''].join('\r\n');
const post = (server: Server, ...headers: string[]): string =>
  head(server, 'POST', postPath[server], 'Content-Type: application/json', ...headers);

async function connected(server: Server, sent: string | Buffer = ''): Promise<RawConnection> {
  const connection = await RawConnection.open(serving[server]);
  await connection.send(sent);
  return connection;
}

const closed = (connection: RawConnection, withinMs: number): Promise<number> =>
  until('the connection is closed', () => connection.closedAfterMs, withinMs);
const answered = (connection: RawConnection): Promise<number | undefined> =>
  until('there is an answer', () => connection.statuses[0] ?? (connection.isOpen ? undefined : -1));

function memoryMib(field: 'VmRSS' | 'VmHWM'): number {
  const text = readFileSync(`/proc/${serving.process.pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]) / KIB;
}

interface Effect {
  readonly growthMib: number;
  readonly slowestMs: number;
  readonly served: number;
}

const effects: [string, Effect][] = [];
afterAll(() => {
  const lines = effects.map(
    ([what, { growthMib, slowestMs, served }]) =>
      `  ${what}: +${Math.round(growthMib)} MiB, slowest of ${served} other requests ${Math.round(slowestMs)} ms`,
  );
  process.stdout.write(`hostile requests\n${lines.join('\n')}\n`);
});

/** Does something to the process while somebody else asks both servers for something, again and again. */
async function meanwhile(hostile: () => Promise<unknown>): Promise<Effect> {
  // Makes VmHWM the highest from here on (proc(5), clear_refs).
  writeFileSync(`/proc/${serving.process.pid}/clear_refs`, '5');
  const before = memoryMib('VmRSS');
  const over = new AbortController();
  let slowestMs = 0;
  let served = 0;
  const ask = async (): Promise<void> => {
    do {
      const startedMs = performance.now();
      const answers = await Promise.all(
        servers.map((server) =>
          fetch(serving[server] + statusPath[server], {
            headers: { 'x-api-key': home.key, apikey: GATEWAY_KEY },
          }),
        ),
      );
      await Promise.all(answers.map((answer) => answer.arrayBuffer()));
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      served += 2;
      await delay(50);
    } while (!over.signal.aborted);
  };
  const asking = ask();
  try {
    await hostile();
  } finally {
    over.abort();
  }
  await asking;
  return { growthMib: memoryMib('VmHWM') - before, slowestMs, served };
}

async function bearable(what: string, hostile: () => Promise<unknown>): Promise<void> {
  const slowestMs = await bestMs(MAX_WAIT_MS, async () => {
    const effect = await meanwhile(hostile);
    effects.push([what, effect]);
    expect(effect.growthMib).toBeLessThan(MAX_GROWTH_MIB);
    return effect.slowestMs;
  });
  expect(slowestMs).toBeLessThan(MAX_WAIT_MS);
}

// At the same time: what they do for half a minute is wait.
describe.runIf(currentRun === 'all').concurrent('slow ones', () => {
  it('headers and bodies that drip, and idle connections by the thousand, end in time', async () => {
    await bearable('slow and idle', async () => {
      const each = <T>(count: number, open: (server: Server) => Promise<T>): Promise<T[]> =>
        Promise.all(Array.from({ length: count }, (_, index) => open(servers[index % 2] ?? 'api')));
      // A server's backlog holds 511: above that the system drops the last step of a handshake, and the connection of who then says nothing waits
      // for the kernel's retries. So each hundred is taken before the next one comes, as an answer to a later connection shows.
      const idle: RawConnection[] = [];
      while (idle.length < 4000) {
        idle.push(...(await each(100, (server) => connected(server))));
        await Promise.all(
          servers.map((server) =>
            fetch(`${serving[server]}/health/live`, { headers: { connection: 'close' } }).then((answer) =>
              answer.arrayBuffer(),
            ),
          ),
        );
      }
      const headers = await each(200, (server) => connected(server, 'GET / HTTP/1.1\r\nHost: x\r\n'));
      const bodies = await each(100, (server) => connected(server, post(server, 'Content-Length: 60000')));
      const chunks = await each(100, (server) =>
        connected(server, post(server, 'Transfer-Encoding: chunked')),
      );
      const upload = await connected(
        'api',
        head('api', 'POST', '/v1/uploads', 'Content-Type: video/mp4', 'Content-Length: 1000000000'),
      );
      await upload.send((await readFile(videos.talk)).subarray(0, 5000));
      const dripping = setInterval(() => {
        for (const connection of headers) void connection.send('a: b\r\n');
        for (const connection of [...bodies, upload]) void connection.send('x');
        for (const connection of chunks) void connection.send('1\r\n \r\n');
      }, 1000);
      const all = [...idle, ...headers, ...bodies, ...chunks, upload];
      await until('all of them are closed', () => all.every(({ isOpen }) => !isOpen), 60_000);
      clearInterval(dripping);
      const slowest = (of: RawConnection[]): number =>
        Math.max(...of.map(({ closedAfterMs }) => closedAfterMs ?? 0));
      expect(slowest([...idle, ...headers])).toBeLessThan(25_000);
      expect(slowest([...bodies, ...chunks, upload])).toBeLessThan(45_000);
      expect(headers.map(({ statuses }) => statuses[0])).toEqual(headers.map(() => 408));
      for (const connection of [...bodies, ...chunks, upload]) expect(connection.statuses).toEqual([408]);
    });
    // Nothing of the upload is left to be used.
    expect((await client.call('GET', '/v1/jobs')).status).toBe(200);
  });

  it('an upload that is slow for minutes goes on, as long as it moves', async () => {
    const video = await readFile(videos.talk);
    const connection = await connected(
      'api',
      head('api', 'POST', '/v1/uploads', 'Content-Type: video/mp4', `Content-Length: ${video.length}`),
    );
    // A little faster than the least rate, for longer than its window.
    const piece = 3 * KIB;
    const pauseMs = 2000;
    const slowUntil = performance.now() + 40_000;
    let sent = 0;
    for (; sent < video.length - piece && performance.now() < slowUntil; sent += piece) {
      await connection.send(video.subarray(sent, sent + piece));
      await delay(pauseMs);
    }
    await connection.send(video.subarray(sent));
    expect(await answered(connection)).toBe(201);
    connection.close();
  });
});

describe.runIf(currentRun === 'all').each(servers)('on the %s, large ones', (server) => {
  it('100,000 headers, and headers without measure', async () => {
    await bearable(`${server}: headers`, async () => {
      const many = Array.from({ length: 100_000 }, (_, index) => `x-${index}: y\r\n`).join('');
      for (const headers of [many, `x: ${'y'.repeat(10 * MIB)}\r\n`, `${'x'.repeat(10 * MIB)}: y\r\n`]) {
        const connection = await connected(server, `GET / HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
        await closed(connection, 20_000);
        // Of who is still sending, the system may drop the answer.
        expect(['', '431']).toContain(connection.statuses.join());
      }
      const path = await connected(server, `GET /${'x'.repeat(10 * MIB)} HTTP/1.1\r\nHost: x\r\n\r\n`);
      await closed(path, 20_000);
      expect(['', '431']).toContain(path.statuses.join());
    });
  });

  it('1 GiB of JSON, in chunks', async () => {
    await bearable(`${server}: 1 GiB of JSON`, async () => {
      const connection = await connected(server, post(server, 'Transfer-Encoding: chunked'));
      const piece = Buffer.alloc(MIB, 0x20);
      const framed = Buffer.concat([Buffer.from(`${MIB.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
      for (let sent = 0; sent < 1024 && connection.isOpen; sent += 1) await connection.send(framed);
      expect(await answered(connection)).toBe(413);
      await closed(connection, 20_000);
    });
  });

  it('lengths that lie', async () => {
    const tooMuch = await connected(server, post(server, `Content-Length: ${1024 * MIB}`));
    expect(await answered(tooMuch)).toBe(413);
    tooMuch.close();
    const moreThanSaid = await connected(server, `${post(server, 'Content-Length: 2')}{}${'x'.repeat(MIB)}`);
    await closed(moreThanSaid, 20_000);
    expect(['400', '400,400']).toContain(moreThanSaid.statuses.join());
    const negative = await connected(server, post(server, 'Content-Length: -1'));
    await closed(negative, 20_000);
    expect(negative.statuses).toEqual([400]);
  });

  it('a flood of requests on one connection', async () => {
    await bearable(`${server}: pipelined flood`, async () => {
      const connection = await connected(server);
      const flood = head(server, 'GET', statusPath[server]).repeat(500);
      for (let sent = 0; sent < 200 && connection.isOpen; sent += 1) await connection.send(flood);
      await closed(connection, 20_000);
      expect(connection.statuses.length).toBeLessThan(100);
    });
  });
});

describe.runIf(currentRun === 'all')('JSON that would become large', () => {
  const deep = '['.repeat(100_000);
  const bodies: [string, Server, string][] = [
    // A submission has at most 64 KiB.
    ['65,000 levels', 'api', deep.slice(0, 65_000)],
    ['32,000 levels, and back', 'api', deep.slice(0, 32_000) + ']'.repeat(32_000)],
    ['100,000 levels', 'gateway', deep + ']'.repeat(100_000)],
    ['100,000 levels of objects', 'gateway', '{"a":'.repeat(100_000)],
    ['24 MiB of brackets', 'gateway', '['.repeat(24 * MIB)],
    ['24 MiB of objects', 'gateway', `[${'{},'.repeat(7 * MIB)}{}]`],
  ];
  it.each(bodies)('%s: %s', async (what, server, body) => {
    await bearable(`${server}: ${what}`, async () => {
      const bytes = Buffer.from(body);
      const headers = { 'x-api-key': home.key, apikey: GATEWAY_KEY, 'content-type': 'application/json' };
      const answers = await Promise.all(
        Array.from({ length: 4 }, () =>
          fetch(serving[server] + postPath[server], { method: 'POST', headers, body: bytes }),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
    });
  });

  it('before anybody knows who sends it: a session of the inbox', async () => {
    await bearable('gateway: JSON of strangers', async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          fetch(`${serving.gateway}/inbox/api/session`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: Buffer.alloc(4 * MIB, '['),
          }).then(
            ({ status }) => status,
            () => 413,
          ),
        ),
      );
      expect(new Set(answers)).toEqual(new Set([413]));
    });
  });
});

describe.runIf(currentRun === 'core')('JSON that means something else', () => {
  it.each(servers)('a part of a form, or a body, that is not UTF-8: %s', async (server) => {
    const body = Buffer.from('{"number": "\xff\xfe"}', 'latin1');
    const connection = await connected(
      server,
      post(server, `Content-Length: ${body.length}`, 'Connection: close'),
    );
    await connection.send(body);
    expect(await answered(connection)).toBe(400);
    expect(connection.received).toContain('UTF-8');
  });

  it.each([
    '{"__proto__": {"format": "exe", "polluted": true}}',
    '{"constructor": {"prototype": {"polluted": true}}}',
    '{"source": {"__proto__": {"polluted": true}}, "output": {"__proto__": {"polluted": true}}}',
    '{"instanceName": "proto", "__proto__": {"transport": "polluted"}}',
  ])('%s changes no prototype', async (body) => {
    const headers = { 'x-api-key': home.key, apikey: GATEWAY_KEY, 'content-type': 'application/json' };
    const asked = [
      ...['/v1/extract', '/v1/batch', '/v1/webhooks/test'].map((path) => serving.api + path),
      ...['/instance/create', '/settings/set/main', '/webhook/set/main', postPath.gateway].map(
        (path) => serving.gateway + path,
      ),
    ];
    for (const url of asked) {
      const { status } = await fetch(url, { method: 'POST', headers, body });
      expect([url, status]).toEqual([url, expect.toSatisfy((code: number) => code < 500)]);
    }
    const { body: usage } = await client.call('GET', '/v1/usage');
    expect(JSON.stringify(usage)).not.toContain('polluted');
    await fetch(`${serving.gateway}/instance/delete/proto`, { method: 'DELETE', headers });
  });
});

describe.runIf(currentRun === 'core').each(servers)('on the %s, ambiguous ones', (server) => {
  const smuggled = `GET ${statusPath[server]} HTTP/1.1\r\nHost: x\r\n\r\n`;
  it.each([
    ['length and chunks', ['Content-Length: 4', 'Transfer-Encoding: chunked']],
    ['chunks and length', ['Transfer-Encoding: chunked', 'Content-Length: 4']],
    ['two lengths', ['Content-Length: 4', 'Content-Length: 40']],
    ['a list of lengths', ['Content-Length: 4, 40']],
    ['a length with a sign', ['Content-Length: +4']],
    ['an unknown coding', ['Transfer-Encoding: xchunked']],
    ['chunked that is not the last coding', ['Transfer-Encoding: chunked, identity']],
    ['a space before the colon', ['Transfer-Encoding : chunked']],
    ['a folded line', ['Transfer-Encoding:', ' chunked']],
    ['a line of its own feed', ['X: y\nTransfer-Encoding: chunked']],
    ['a zero byte', ['X: y\0z']],
    ['a lone carriage return', ['X: y\rTransfer-Encoding: chunked']],
  ])('%s: 400, and what comes behind is not a request', async (_what, headers) => {
    const connection = await connected(server, `${post(server, ...headers)}0\r\n\r\n${smuggled}`);
    await closed(connection, 20_000);
    expect(connection.statuses).toEqual([400]);
  });

  it.each(['fffffffffffffffff', '-1', '0x10', '1;a=\n', '1 1'])('the size of a chunk is %j', async (size) => {
    const connection = await connected(
      server,
      `${post(server, 'Transfer-Encoding: chunked')}${size}\r\nx\r\n0\r\n\r\n${smuggled}`,
    );
    await closed(connection, 20_000);
    expect(connection.statuses.every((status) => status === 400 || status === 413)).toBe(true);
    expect(connection.statuses.length).toBe(1);
  });

  it('two keys are none, whichever comes first', async () => {
    const wrong = server === 'api' ? `X-API-Key: sp_aaaaaaaa_${'a'.repeat(40)}` : 'apikey: wrong';
    for (const keys of [
      [keyHeader[server](), wrong],
      [wrong, keyHeader[server]()],
    ]) {
      const text = ['GET /v1/jobs HTTP/1.1', 'Host: x', ...keys, 'Connection: close', '', ''].join('\r\n');
      expect(await answered(await connected(server, text))).toBe(401);
    }
  });
});

describe.runIf(currentRun === 'core')('paths that lead elsewhere', () => {
  const ways = [
    '../../../../etc/passwd',
    '..%2f..%2f..%2f..%2fetc%2fpasswd',
    '%2e%2e/%2e%2e/%2e%2e/etc/passwd',
    '%252e%252e%252fetc%252fpasswd',
    '..%5c..%5cpackage.json',
    '..%2fpackage.json',
    '%2e%2e%2f%2e%2e%2fpackage.json',
    '%c0%ae%c0%ae/package.json',
    '%00',
    'x%00.enc',
    '/etc/passwd',
    'file:%2f%2f%2fetc%2fpasswd',
    'x'.repeat(8000),
  ];
  const targets: [Server, string, string][] = [
    ...routes.map(({ method, path }): [Server, string, string] => ['api', method.toUpperCase(), path]),
    ...mountedRoutes().map((route): [Server, string, string] => {
      const [method = '', path = ''] = route.split(' ');
      return ['gateway', method, path];
    }),
    ['gateway', 'GET', '/inbox/:file'],
    ['api', 'GET', '/audio-extract/v1/download/:jobId'],
  ];

  it('lead nowhere, by any parameter of any route', async () => {
    const withParameters = targets.filter(([, , path]) => path.includes('/:') && !path.startsWith('/i/'));
    expect(withParameters.length).toBeGreaterThan(35);
    const wrong: unknown[] = [];
    for (const [server, method, path] of withParameters) {
      const parameters = [...path.matchAll(/:\w+/g)].map(([name]) => name);
      for (const parameter of parameters) {
        const tried = ways.map(async (way) => {
          const filled = path.replace(parameter, () => way).replaceAll(/:\w+/g, 'x');
          const body = method === 'GET' ? '' : '{}';
          const headers = [
            'Content-Type: application/json',
            `Content-Length: ${body.length}`,
            'Connection: close',
          ];
          const connection = await connected(server, head(server, method, filled, ...headers) + body);
          const status = await answered(connection);
          await closed(connection, 20_000);
          const isRefused = status !== undefined && status >= 400 && status < 500;
          if (!isRefused || /root:x|"name": "soundpost"|at \S+ \(|\/work\//.test(connection.received)) {
            wrong.push([server, method, filled.slice(0, 200), status]);
          }
        });
        await Promise.all(tried);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('lead from an invitation to the inbox alone', async () => {
    for (const way of [...ways, '//evil.example', '%2f%2fevil.example', '%0d%0aX-Injected: 1']) {
      const connection = await connected('gateway', head('gateway', 'GET', `/i/${way}`, 'Connection: close'));
      await closed(connection, 20_000);
      const location = /^location: (.*)\r$/im.exec(connection.received)?.[1];
      expect([way, location ?? '../inbox?invite=']).toEqual([
        way,
        expect.stringMatching(/^\.\.\/inbox\?invite=[^/:\s]*$/),
      ]);
      expect(connection.received).not.toMatch(/^X-Injected/im);
    }
  });
});

describe.runIf(currentRun === 'core')('file names', () => {
  const names = [
    '../../../../tmp/escaped.mp4',
    '..\\..\\escaped.mp4',
    '/etc/passwd.mp4',
    'a\r\nX-Injected: 1\r\n\r\n<html>.mp4',
    'a"; filename="b.exe',
    'a%0d%0aX-Injected: 1.mp4',
    '\u202egpj.mp4',
    '.mp4',
    `${'x'.repeat(5000)}.mp4`,
    'C:\\con.mp4',
    'a\u0000b.mp4',
  ];

  it.each(names.slice(0, 4))('%j of an upload is only a name', async (name) => {
    const video = await readFile(videos.talk);
    const encoded = encodeURIComponent(name).replaceAll("'", '%27');
    const upload = await fetch(`${serving.api}/v1/uploads`, {
      method: 'POST',
      headers: {
        'x-api-key': home.key,
        'content-type': 'video/mp4',
        'content-disposition': `attachment; filename*=UTF-8''${encoded}`,
      },
      body: video,
    });
    const { data } = (await upload.json()) as Json;
    expect(upload.status).toBe(201);
    const jobId = await client.submit({
      source: { type: 'upload', file: data.file },
      output: { format: 'mp3' },
    });
    const job = await client.completed(jobId);
    expect(job.inputFile.name).not.toMatch(/[/\\\p{Cc}]/u);
    expect(job.outputFile.filename).not.toMatch(/[/\\\p{Cc}]/u);
    await expectSafeDownload(jobId);
  });

  it.each(names.slice(3))('%j of an output is refused, or only a name', async (filename) => {
    const form = new FormData();
    form.append('request', JSON.stringify({ output: { format: 'mp3', filename } }));
    form.append('file', new Blob([await readFile(videos.talk)]), filename);
    const { status, body } = await client.call('POST', '/v1/extract', form);
    expect([202, 400]).toContain(status);
    if (status === 202) {
      await client.completed(body.data.jobId);
      await expectSafeDownload(body.data.jobId);
    }
  });

  /** The bytes of the head, as they are on the connection. */
  async function expectSafeDownload(jobId: string): Promise<void> {
    const connection = await connected(
      'api',
      head('api', 'HEAD', `/v1/download/${jobId}`, 'Connection: close'),
    );
    await closed(connection, 20_000);
    expect(connection.statuses).toEqual([200]);
    expect(connection.received).not.toMatch(/^X-Injected/im);
    const disposition = /^content-disposition: (.*)\r$/im.exec(connection.received)?.[1] ?? '';
    expect(disposition).toMatch(
      /^attachment; filename=("(?:[^"\\\r\n]|\\.)*"|[\w.-]+)(; filename\*=UTF-8''[\w.!~*()%-]+)?$/,
    );
    expect(decodeURIComponent(disposition.replaceAll(/%(?![0-9A-F]{2})/g, '%25'))).not.toMatch(
      /[/\p{Cc}]|\\[^"\\]/u,
    );
  }
});
