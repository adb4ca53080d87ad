/** How the console is served; what it does is test/end-to-end/console.all.test.ts. */
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { useService } from './api-fixture.ts';

describe('the console', () => {
  const service = useService({ parts: [] });
  const get = (path: string, headers = {}) => service().call('GET', path, { key: null, headers });
  const namedIn = (html: string) =>
    [...html.matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map(([, path = '']) => path);
  const script = async () => `/${namedIn((await get('/')).bytes.toString())[1]}`;

  it('is at the root, for who has no key yet, and every file that it names is there', async () => {
    const { status, headers, bytes } = await get('/');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const named = namedIn(bytes.toString());
    expect(named).toEqual(['console/console.css', expect.stringMatching(/^console\/parts\/[\w-]+\.js$/)]);
    for (const path of named) expect([path, (await get(`/${path}`)).status]).toEqual([path, 200]);
    expect((await service().call('HEAD', '/', { key: null })).status).toBe(200);
    expect(bytes.toString()).toContain('<meta name="soundpost-transcriber" content="no" />');
  });

  it('every module that a module names is there too, libraries among them', async () => {
    const known = new Set([await script()]);
    for (const path of known) {
      const { status, bytes } = await get(path);
      expect([path, status]).toEqual([path, 200]);
      for (const [, name = ''] of bytes.toString().matchAll(/(?:import\(?|from)"(\.[^"]+\.js)"/g)) {
        known.add(new URL(name, `http://x${path}`).pathname);
      }
    }
    const names = [...known].map((path) => path.replace(/^.*\/|-\w+\.js$/g, ''));
    expect(names).toEqual(expect.arrayContaining(['job', 'webhooks', 'browser', 'wavesurfer.esm']));
  });

  it('lets nothing in from elsewhere and nothing that stands in the page itself without its nonce', async () => {
    const policy = (await get('/')).headers['content-security-policy'] ?? '';
    const directives = Object.fromEntries(
      policy
        .split('; ')
        .map((directive) => [directive.split(' ')[0], directive.split(' ').slice(1).join(' ')]),
    );
    expect(directives).toMatchObject({
      'default-src': "'none'",
      'script-src': expect.stringMatching(/^'self' 'nonce-[\w+/]{22}=='$/),
      'connect-src': "'self'",
    });
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect((await get('/')).bytes.toString()).not.toMatch(/ style=|<style|<script(?! [^>]*nonce=)|\son\w+=/);
  });

  it('allows a style by a nonce of this one answer, and lets nobody keep the answer', async () => {
    const nonces = await Promise.all(
      [1, 2].map(async () => {
        const { headers, bytes } = await get('/', { 'accept-encoding': 'gzip' });
        expect([headers['content-encoding'], headers['cache-control']]).toEqual(['gzip', 'no-store']);
        const [, nonce = ''] = /nonce="([^"]+)"/.exec(gunzipSync(bytes).toString()) ?? [];
        expect(headers['content-security-policy']).toContain(`style-src 'self' 'nonce-${nonce}';`);
        return nonce;
      }),
    );
    expect(nonces[0]).toMatch(/^[\w+/]{22}==$/);
    expect(nonces[1]).not.toBe(nonces[0]);
  });

  it('is asked for again with its tag, and not sent again', async () => {
    const path = await script();
    const { headers } = await get(path, { 'accept-encoding': 'br' });
    expect(headers['content-encoding']).toBe('br');
    const known = { 'accept-encoding': 'br', 'if-none-match': headers.etag };
    expect((await get(path, known)).status).toBe(304);
  });

  it.each(['/console', '/console/', '/console/nothing.js', '/console/../src/main.ts', '/index.html'])(
    'what it has not is answered as ever: %s',
    async (path) => {
      const { status, body } = await get(path);
      expect([status, body.error.code]).toEqual([401, 'UNAUTHORIZED']);
      expect((await service().call('GET', path)).body.error.code).toBe('NOT_FOUND');
    },
  );

  it('stands in nobody’s way', async () => {
    expect((await get('/health/live')).body).toBeDefined();
    expect((await get('/openapi.json')).body.openapi).toMatch(/^3\.1/);
    expect((await get('/docs')).headers['content-type']).toMatch('text/html');
    expect((await get('/v1/usage')).status).toBe(401);
    expect((await service().call('POST', '/')).status).toBe(404);
  });
});

describe('with CONSOLE=off', () => {
  const service = useService({ parts: [], environment: { CONSOLE: 'off' } });

  it('there is none, and the root leads to the reference', async () => {
    expect((await service().call('GET', '/console/console.css')).body.error.code).toBe('NOT_FOUND');
    const { status, headers } = await service().call('GET', '/', { key: null });
    expect([status, headers.location]).toEqual([302, 'docs']);
  });
});

describe('with downloads from a bucket', () => {
  const service = useService({
    parts: [],
    environment: {
      STORAGE_URL: 's3://results',
      S3_ENDPOINT: 'http://127.0.0.1:1',
      S3_ACCESS_KEY_ID: 'nobody-asks',
      S3_SECRET_ACCESS_KEY: 'for these',
      S3_PUBLIC_ENDPOINT: 'https://files.example.com/base',
    },
  });

  it('the page may play and draw what comes from there', async () => {
    const { headers } = await service().call('GET', '/', { key: null });
    const policy = headers['content-security-policy'] ?? '';
    for (const directive of ['connect-src', 'media-src']) {
      expect(policy).toMatch(
        new RegExp(`${directive} [^;]*https://files\\.example\\.com https://results\\.files\\.example\\.com`),
      );
    }
  });
});
