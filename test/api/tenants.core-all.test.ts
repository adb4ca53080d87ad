/**
 * What a tenant may name in the bodies and queries of requests: uploads, chat accounts, signed addresses. Which
 * route opens to whom is in authorisation.test.ts.
 */
import { readFile } from 'node:fs/promises';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Json, useClips, useService } from './api-fixture.ts';

const clip = useClips('tone.mp4');
const service = useService({ parts: ['worker', 'gateway'] });

const ADA = '12025550101';
const UNKNOWN = 'upl_0123456789abcdef';
/** Of the tenant of the service's own key. */
const mine = { job: '', upload: '' };

const extraction = (): Json => ({
  source: { type: 'url', url: `http://127.0.0.1:${service().outside.port}/tone.mp4` },
  output: { format: 'mp3' },
});

beforeAll(async () => {
  const { outside } = service();
  await outside.file('tone.mp4', clip('tone.mp4'));
  mine.job = (await service().run(extraction())).jobId;
  const upload = await service().call('POST', '/v1/uploads', {
    body: await readFile(clip('tone.mp4')),
    headers: { 'content-type': 'video/mp4' },
  });
  mine.upload = upload.body.data.file;
});

/** Everything of an answer that could tell what is somebody else's from what does not exist. */
const comparable = ({ status, bytes }: Answer, id: string): unknown => [
  status,
  bytes.toString().replaceAll(id, 'ID'),
];

describe.runIf(currentRun === 'core')('What a body names of another tenant', () => {
  it.each([
    ['POST /v1/extract', (job: Json) => job],
    ['POST /v1/batch', (job: Json) => ({ jobs: [job] })],
  ])('%s: an upload answers exactly as an unknown one', async (name, request) => {
    const [method = '', path = ''] = name.split(' ');
    const stranger = await service().newKey();
    const ask = (file: string): Promise<Answer> =>
      service().call(method, path, {
        key: stranger,
        json: request({ ...extraction(), source: { type: 'upload', file } }),
      });
    const foreign = await ask(mine.upload);
    expect([foreign.status, foreign.body.error.code]).toEqual([400, 'INVALID_SOURCE']);
    expect(comparable(foreign, mine.upload)).toEqual(comparable(await ask(UNKNOWN), UNKNOWN));
  });

  it('a page of jobs is one’s own', async () => {
    const stranger = await service().newKey();
    await service().submit(extraction());
    const { body: own } = await service().call('POST', '/v1/extract', { key: stranger, json: extraction() });
    const page = await service().call('GET', '/v1/jobs?limit=1');
    const cursor = encodeURIComponent(page.body.data.nextCursor);
    for (const query of ['', `?cursor=${cursor}`, `?q=${mine.job}`]) {
      const { body } = await service().call('GET', `/v1/jobs${query}`, { key: stranger });
      const seen = body.data.jobs.map(({ jobId }: Json) => jobId);
      expect(seen.filter((jobId: string) => jobId !== own.data.jobId)).toEqual([]);
    }
  });
});

describe('A chat account that is not on the key’s list', () => {
  const voiceMessage = { instance: 'main', number: ADA };
  const sent = async (): Promise<number> => {
    const path = `/inbox/api/instances/main/chats/${ADA}@people.loopback/messages`;
    return (await service().gateway('GET', path)).body.length;
  };
  /** What is sent, by itself or with a job that is completed. */
  const ways: [name: string, needs: 'nothing' | 'a job', request: (completed: string) => [string, Json]][] = [
    ['extract', 'nothing', () => ['/v1/extract', { ...extraction(), options: { voiceMessage } }]],
    ['batch', 'nothing', () => ['/v1/batch', { jobs: [{ ...extraction(), options: { voiceMessage } }] }]],
    ['batch, for all of its jobs', 'nothing', () => ['/v1/batch', { jobs: [extraction()], voiceMessage }]],
    ['voice-message', 'a job', (completed) => [`/v1/jobs/${completed}/voice-message`, voiceMessage]],
  ];

  const jobFor = async (needs: string, key: string): Promise<string[]> =>
    needs === 'nothing' ? [] : [(await service().run(extraction(), { key })).jobId];

  it.each(rowsOfRun(ways, 2))('is not sent as: %s', async (_way, needs, request) => {
    const before = await sent();
    for (const instances of [[], ['other'], ['MAIN'], ['main ']]) {
      const key = await service().newKey({ instances });
      const jobs = await jobFor(needs, key);
      const [path, json] = request(jobs[0] ?? '');
      const { status, body } = await service().call('POST', path, { key, json });
      expect([instances, status, body.error.code]).toEqual([instances, 403, 'FORBIDDEN']);
      expect((await service().call('GET', '/v1/jobs', { key })).body.data.jobs).toHaveLength(jobs.length);
    }
    expect(await sent()).toBe(before);
  });

  it.each(rowsOfRun(ways, 1))('is sent as when it is on the list: %s', async (_way, needs, request) => {
    const key = await service().newKey({ instances: ['other', 'main'] });
    const [jobId = ''] = await jobFor(needs, key);
    const [path, json] = request(jobId);
    expect((await service().call('POST', path, { key, json })).status).toBe(202);
  });

  it.runIf(currentRun === 'core')('has an inbox that no API key opens', async () => {
    const { key, gatewayUrl } = service();
    const paths = ['instances', 'events', 'instances/main/chats', `instances/main/chats/${ADA}/messages`];
    const ways: Record<string, string>[] = [
      { apikey: key },
      { 'x-api-key': key },
      { authorization: `Bearer ${key}` },
    ];
    for (const path of [...paths.map((path) => `/inbox/api/${path}`), '/instance/fetchInstances']) {
      for (const headers of ways) {
        const { status } = await service().call('GET', `${gatewayUrl}${path}`, { key: null, headers });
        expect([path, status]).toEqual([path, 401]);
      }
    }
  });
});

describe.runIf(currentRun === 'core')('A signed address', () => {
  const signed = async (jobId: string): Promise<URL> => new URL((await service().job(jobId)).outputFile.url);

  it('opens its own job until its own expiry, and is no key', async () => {
    const url = await signed(mine.job);
    const other = (await service().run(extraction())).jobId;
    const ask = async (change: (url: URL) => void, key: string | null = null): Promise<number> => {
      const changed = new URL(url);
      change(changed);
      return (await service().call('GET', changed.href, { key })).status;
    };
    const path = (pathname: string) => (changed: URL) => Object.assign(changed, { pathname });
    expect(await ask(() => undefined)).toBe(200);
    expect(await ask(path(`/v1/download/${other}`))).toBe(403);
    expect(await ask((changed) => changed.searchParams.set('rendition', 'voice'))).toBe(403);
    const later = String(Number(url.searchParams.get('expires')) + 1);
    expect(await ask((changed) => changed.searchParams.set('expires', later))).toBe(403);
    for (const elsewhere of ['status', 'jobs']) {
      expect(await ask(path(`/v1/${elsewhere}/${mine.job}`))).toBe(401);
    }
    // A key does not mend a signature that is wrong.
    expect(await ask((changed) => changed.searchParams.set('expires', later), service().key)).toBe(403);
  });
});
