import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Ask, useClips, useService } from './api-fixture.ts';
import { DocumentChecks } from './openapi-checks.ts';

const clip = useClips('tone.mp4', 'silent.mp4');
const service = useService();

describe('GET /openapi.json', () => {
  it('needs no key and names the address of the service', async () => {
    const { status, headers, body } = await service().call('GET', '/openapi.json', { key: null });
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(body.openapi).toBe('3.1.1');
    expect(body.servers[0].url).toBe(service().url);
  });

  it('has a strong ETag, may be cached, and is not sent again to who has it', async () => {
    const { headers, bytes } = await service().call('GET', '/openapi.json', { key: null });
    expect(headers.etag).toMatch(/^"[0-9a-f]{64}"$/);
    expect(headers['cache-control']).toBe('public, max-age=300');
    const again = await service().call('GET', '/openapi.json', {
      key: null,
      headers: { 'if-none-match': headers.etag ?? '' },
    });
    expect([again.status, again.bytes.length, bytes.length > 0]).toEqual([304, 0, true]);
    const other = await service().call('GET', '/openapi.json', {
      key: null,
      headers: { 'if-none-match': '"x"' },
    });
    expect(other.status).toBe(200);
  });

  it('describes only what is mounted, also under /audio-extract', async () => {
    const { body } = await service().call('GET', '/openapi.json');
    for (const [path, item] of Object.entries<object>(body.paths)) {
      const concrete = path.replaceAll(/\{\w+\}/g, 'x');
      for (const prefix of path.startsWith('/v1/') ? ['', '/audio-extract'] : ['']) {
        const { status, headers } = await service().call('OPTIONS', prefix + concrete, { key: null });
        expect([prefix + path, status]).toEqual([prefix + path, 204]);
        const methods = Object.keys(item).filter((key) => key !== 'servers');
        expect(headers.allow?.toLowerCase().split(', ')).toEqual(expect.arrayContaining(methods));
      }
    }
  });
});

describe('what the service answers', () => {
  let checks: DocumentChecks;
  beforeAll(async () => {
    checks = new DocumentChecks((await service().call('GET', '/openapi.json')).body);
  });

  const conforming = async (method: string, path: string, concrete: string, ask?: Ask): Promise<Answer> => {
    const answer = await service().call(method, concrete, ask);
    const mediaType = answer.headers['content-type']?.split(';')[0] ?? '';
    const faults = checks.answerFaults(method, path, answer.status, mediaType, answer.body);
    expect(faults, `${method} ${concrete}: ${answer.bytes.toString('utf8').slice(0, 2000)}`).toEqual([]);
    return answer;
  };

  it('is what the document says of a job that completes', async () => {
    const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
    const hook = service().outside.hook('openapi');
    const accepted = await conforming('POST', '/v1/extract', '/v1/extract', {
      json: {
        source: { type: 'url', url },
        output: { format: 'mp3', normalize: true },
        options: { webhook: hook.url },
      },
    });
    const { jobId } = accepted.body.data;
    await conforming('GET', '/v1/status/{jobId}', `/v1/status/${jobId}`);
    await conforming('GET', '/v1/download/{jobId}', `/v1/download/${jobId}`);
    await service().ended(jobId);
    const [notification] = await hook.got(1);
    const event = '/webhooks/job.completed/post/requestBody/content/application~1json/schema';
    expect(checks.faults(event, notification?.json)).toEqual([]);
    await conforming('GET', '/v1/status/{jobId}', `/v1/status/${jobId}`);
    await conforming('GET', '/v1/jobs/{jobId}', `/v1/jobs/${jobId}`);
    await conforming('GET', '/v1/jobs', '/v1/jobs?limit=3');
    await conforming('GET', '/v1/jobs/{jobId}/deliveries', `/v1/jobs/${jobId}/deliveries`);
    await conforming('DELETE', '/v1/jobs/{jobId}', `/v1/jobs/${jobId}`);
    const gone = await conforming('GET', '/v1/download/{jobId}', `/v1/download/${jobId}`);
    expect(gone.status).toBe(410);
  });

  it('is what the document says of a batch with a job that fails', async () => {
    const url = await service().outside.file('silent.mp4', clip('silent.mp4'));
    const batch = await conforming('POST', '/v1/batch', '/v1/batch', {
      json: { jobs: [{ source: { type: 'url', url }, output: { format: 'flac' } }] },
    });
    const { batchId, jobs } = batch.body.data;
    const [{ jobId }] = jobs;
    expect((await service().ended(jobId)).status).toBe('failed');
    await conforming('GET', '/v1/batch/{batchId}', `/v1/batch/${batchId}`);
    await conforming('GET', '/v1/status/{jobId}', `/v1/status/${jobId}`);
    await conforming('GET', '/v1/jobs/{jobId}', `/v1/jobs/${jobId}`);
    await conforming('GET', '/v1/download/{jobId}', `/v1/download/${jobId}`);
    const retried = await conforming('POST', '/v1/jobs/{jobId}/retry', `/v1/jobs/${jobId}/retry`);
    expect(retried.status).toBe(202);
  });

  it('is what the document says of the rest', async () => {
    await conforming('GET', '/v1/usage', '/v1/usage');
    await conforming('GET', '/v1/webhooks/secret', '/v1/webhooks/secret');
    await conforming('GET', '/health/live', '/health/live', { key: null });
    await conforming('GET', '/health/ready', '/health/ready', { key: null });
  });

  it.each([
    ['POST', '/v1/extract', '/v1/extract', { json: {} }, 400],
    ['POST', '/v1/extract', '/v1/extract', { json: {}, key: null }, 401],
    ['POST', '/v1/extract', '/v1/extract', { body: 'x', headers: { 'content-type': 'text/plain' } }, 415],
    ['POST', '/v1/batch', '/v1/batch', { json: { jobs: Array(11).fill({}) } }, 400],
    ['GET', '/v1/jobs/{jobId}', '/v1/jobs/job_0000000000000000', {}, 404],
    ['GET', '/v1/jobs/{jobId}', '/v1/jobs/1', {}, 400],
    ['GET', '/v1/download/{jobId}', '/v1/download/job_0000000000000000?signature=x', {}, 403],
    ['POST', '/hooks/gateway', '/hooks/gateway', { json: {} }, 401],
  ])('is what the document says of the errors of %s %s', async (method, path, concrete, ask, status) => {
    const answer = await conforming(method, path, concrete, ask);
    expect(answer.status).toBe(status);
  });
});

describe('GET /docs', () => {
  it('is a page whose scripts are files of this server, and lets nobody else in', async () => {
    const { status, headers, bytes } = await service().call('GET', '/docs', { key: null });
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const scripts = [...bytes.toString('utf8').matchAll(/<script([^>]*)>([^<]*)</g)];
    expect(scripts.map(([, attributes, text]) => [attributes, text])).toEqual([
      [' src="docs/scalar.js"', ''],
      [' src="docs/reference.js"', ''],
    ]);
    expect(headers.etag).toMatch(/^"[0-9a-f]{64}"$/);
  });

  it('its large file comes compressed, and is not sent again to who has it', async () => {
    const asked = { 'accept-encoding': 'gzip' };
    const { headers, bytes } = await service().call('GET', '/docs/scalar.js', { key: null, headers: asked });
    expect(headers['content-encoding']).toBe('gzip');
    expect(bytes.length).toBeLessThan(1.5 * 1024 ** 2);
    const known = { ...asked, 'if-none-match': headers.etag ?? '' };
    expect((await service().call('GET', '/docs/scalar.js', { key: null, headers: known })).status).toBe(304);
  });

  it('alone allows styles that stand in the page', async () => {
    for (const path of ['/', '/docs/scalar.js', '/openapi.json', '/health/live']) {
      const { headers } = await service().call('GET', path, { key: null });
      expect([path, headers['content-security-policy']]).toEqual([
        path,
        expect.not.stringContaining('unsafe'),
      ]);
    }
  });
});
