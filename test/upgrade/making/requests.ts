/** What the jobs of the first edition need beside themselves: keys, secrets, uploads, and submissions that are to be repeated. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, type Json } from '../../client.ts';
import { until } from '../../until.ts';
import type { JobsManifest, KeyedRequest } from '../manifest.ts';
import { FIXTURE } from '../outside.ts';
import { type FirstEdition, kill } from './processes.ts';

export async function makeKeys({ run, key }: FirstEdition): Promise<JobsManifest['keys']> {
  const create = (name: string): Promise<string> => run('keys', 'create', '--name', name, '--instances', '*');
  const idOf = (text: string): string => text.split('_')[1] ?? '';
  const bob = await create('bob');
  const rotatedBefore = await create('rotated');
  const rotated = await run('keys', 'rotate', idOf(rotatedBefore));
  const revoked = await create('revoked');
  await run('keys', 'revoke', idOf(revoked));
  return { alice: key, bob, rotatedBefore, rotated, revoked };
}

export async function secretOf(client: Client, method: 'GET' | 'POST'): Promise<string> {
  return (await client.call(method, '/v1/webhooks/secret')).body.data.secret;
}

export async function keyed(
  client: Client,
  path: string,
  idempotencyKey: string,
  request: object,
): Promise<Required<KeyedRequest>> {
  const { status, body } = await client.call('POST', path, request, { 'Idempotency-Key': idempotencyKey });
  if (status >= 300) throw new Error(`${path} answered ${status}: ${JSON.stringify(body)}`);
  return { idempotencyKey, request, answer: body };
}

/** As the body itself, so that the test can send the very same again. */
export async function keyedUpload(
  client: Client,
  base: string,
  key: string,
  idempotencyKey: string,
): Promise<Required<KeyedRequest>> {
  const response = await fetch(`${base}/v1/uploads`, {
    method: 'POST',
    headers: {
      'X-API-Key': key,
      'Idempotency-Key': idempotencyKey,
      'Content-Type': 'video/mp4',
      'Content-Disposition': 'attachment; filename="talk.mp4"',
    },
    body: await readFile(join(FIXTURE, 'talk.mp4')),
  });
  const answer: Json = await response.json();
  if (response.status !== 201) throw new Error(`the upload was refused: ${JSON.stringify(answer)}`);
  const { status } = await client.call('GET', `/v1/uploads/${answer.data.file}`);
  if (status !== 200) throw new Error('the upload is unknown');
  return { idempotencyKey, request: null, answer };
}

export async function beginTus(
  base: string,
  key: string,
  bytes: Buffer,
): Promise<JobsManifest['uploads']['incomplete']> {
  const headers = { 'X-API-Key': key, 'Tus-Resumable': '1.0.0' };
  const created = await fetch(`${base}/v1/uploads`, {
    method: 'POST',
    headers: {
      ...headers,
      'Upload-Length': String(bytes.length),
      'Upload-Metadata': `filename ${btoa('talk.mp4')}`,
    },
  });
  const location = created.headers.get('location') ?? '';
  const offset = Math.floor(bytes.length / 2);
  const sent = await fetch(location, {
    method: 'PATCH',
    headers: { ...headers, 'Upload-Offset': '0', 'Content-Type': 'application/offset+octet-stream' },
    body: bytes.subarray(0, offset),
  });
  if (sent.status !== 204) throw new Error(`the chunk was refused: ${sent.status}`);
  return { file: location.split('/').at(-1) ?? '', offset, size: bytes.length };
}

/** Waiting for a replica that does not come, an API adds the job and has not answered yet: there it is killed. */
export async function interrupt(
  edition: FirstEdition,
  alice: Client,
  key: string,
  request: object,
): Promise<JobsManifest['idempotency']['interrupted']> {
  const idempotencyKey = 'a job whose API was killed';
  const slow = edition.start('api', { REDIS_WAIT_REPLICAS: '1' });
  const base = await slow.says(/^API\s+(http\S+)/m);
  const newest = async (): Promise<string> =>
    (await alice.call('GET', '/v1/jobs?limit=1')).body.data.jobs[0].jobId;
  const before = await newest();
  const answered = new Client(base, key)
    .call('POST', '/v1/extract', request, { 'Idempotency-Key': idempotencyKey })
    .then(
      () => true,
      () => false,
    );
  const jobId = await until('the job to be added', async () => {
    const found = await newest();
    return found !== before && found;
  });
  await kill(slow);
  if (await answered) throw new Error('the API answered before it was killed; make the data again');
  return { idempotencyKey, request, jobId };
}
