/**
 * A good request, or several, for each route of the table. Who adds a route with a body adds a request here; the tests that walk the
 * table say so.
 */
import { readFile } from 'node:fs/promises';
import { UrlSigner } from 'soundpost-kit/signing/signatures';
import { routes } from '../../src/api/app.ts';
import { signWebhook } from '../../src/followups/post-webhook.ts';
import { deriveSecrets } from '../../src/process/secrets.ts';
import { type Ask, type Json, SECRET_KEY, type TestService } from './api-fixture.ts';

export interface RouteRequest {
  readonly method: string;
  readonly path: string;
  readonly ask: Ask;
  /** The path as the table has it, with the method, to name the route. */
  readonly route: string;
}

/** What the requests are about. */
export interface Subjects {
  /** A job that has completed and has its file. */
  readonly jobId: string;
  /** One whose signed download address is still good. */
  readonly downloadUrl: string;
  readonly batchId: string;
  /** An unfinished tus upload of which nothing has arrived. */
  readonly uploadId: string;
  /** Path of a video. */
  readonly video: string;
  /** Source of the jobs that are submitted; it stalls until it is let go, so that they do nothing meanwhile. */
  readonly sourceUrl: string;
  readonly letGo: () => void;
  readonly hookUrl: string;
  /** Of the service: its cookies are called by it. */
  readonly port: string;
}

const TUS_BYTES = 5;
const TUS = { 'tus-resumable': '1.0.0' };

type Variant = Ask & { readonly method?: string; readonly path?: string };

/** In the order of the table, but what ends a subject comes last. */
export async function routeRequests(subjects: Subjects): Promise<RouteRequest[]> {
  const variants = await variantsOf(subjects);
  const requests = routes.flatMap(({ method, path, docs }): RouteRequest[] => {
    const known = variants[docs.operationId];
    if (known === undefined && docs.body !== undefined) {
      throw new Error(`${docs.operationId} has a body: add a request to ${import.meta.filename}`);
    }
    return (known ?? [{}]).map(({ method: other, path: address, ...ask }) => ({
      method: other ?? method.toUpperCase(),
      path: address ?? concrete(path, subjects),
      ask,
      route: `${method.toUpperCase()} ${path}`,
    }));
  });
  return [
    ...requests.filter(({ method }) => method !== 'DELETE'),
    ...requests.filter(({ method }) => method === 'DELETE'),
  ];
}

async function variantsOf(subjects: Subjects): Promise<Record<string, readonly Variant[]>> {
  const { downloadUrl, sourceUrl, hookUrl, video, port } = subjects;
  const job = { source: { type: 'url', url: sourceUrl }, output: { format: 'mp3' } };
  const bytes = await readFile(video);
  const form = (request?: Json): FormData => {
    const parts = new FormData();
    if (request !== undefined) parts.append('request', JSON.stringify(request));
    parts.append('file', new Blob([bytes]), 'a.mp4');
    return parts;
  };
  const event = JSON.stringify({
    event: 'messages.update',
    instance: 'main',
    date_time: new Date().toISOString(),
    sender: '491700000000@s.whatsapp.net',
    data: { key: { id: 'M1', remoteJid: '1@s.whatsapp.net', fromMe: true }, status: 'READ' },
  });
  const signed = signWebhook('1', event, [deriveSecrets(SECRET_KEY).gatewayEventsSecret], Date.now());
  return {
    extractAudio: [
      { json: job },
      { json: job, headers: { 'idempotency-key': 'walk' } },
      { body: form({ output: { format: 'mp3' } }) },
    ],
    submitBatch: [{ json: { jobs: [job] } }],
    createTranscription: [{ body: form() }],
    createTranslation: [{ body: form() }],
    createUpload: [
      { body: form() },
      { body: bytes, headers: { 'content-type': 'video/mp4' } },
      { headers: { ...TUS, 'upload-length': String(TUS_BYTES) } },
    ],
    getUpload: [{}, { method: 'HEAD', headers: TUS }],
    appendToUpload: [
      {
        body: Buffer.alloc(1),
        headers: { ...TUS, 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
      },
    ],
    sendVoiceMessage: [{ json: { instance: 'main', number: '491700000001' } }],
    downloadAudio: [{}, { path: downloadUrl, key: null }, { method: 'HEAD' }],
    testWebhook: [{ json: { url: hookUrl } }],
    replayDestination: [{ json: {} }],
    createKey: [{ json: { name: 'walk', scopes: ['read'] } }],
    changeJobs: [{ json: { action: 'delete', jobs: ['job_0123456789abcdef'] } }],
    beginSession: [
      {
        json: { key: 'sp_nobody00_0123456789abcdef0123456789abcdef' },
        headers: { 'soundpost-console': '1' },
      },
    ],
    endSession: [
      { headers: { 'soundpost-console': '1', cookie: `soundpost-session-${port}=${'x'.repeat(43)}` } },
    ],
    listEndpointDeliveries: [{ path: `/v1/deliveries?endpoint=${encodeURIComponent(hookUrl)}` }],
    resendDeliveries: [{ json: { since: new Date().toISOString() } }],
    receiveGatewayEvent: [
      { key: null, body: event, headers: { 'content-type': 'application/json', ...signed } },
    ],
  };
}

function concrete(path: string, { jobId, batchId, uploadId }: Subjects): string {
  return path
    .replace(':jobId', jobId)
    .replace(':batchId', batchId)
    .replace(':uploadId', uploadId)
    .replace(/:\w+/, 'x');
}

/** Makes what the requests are about. */
export async function makeSubjects(service: TestService, video: string): Promise<Subjects> {
  const url = await service.outside.file('subject.mp4', video);
  const batch = await service.call('POST', '/v1/batch', {
    json: { jobs: [{ source: { type: 'url', url }, output: { format: 'mp3' } }] },
  });
  const [{ jobId }] = batch.body.data.jobs;
  const { status, error } = await service.ended(jobId);
  if (status !== 'completed') throw new Error(`the job to ask about failed: ${JSON.stringify(error)}`);
  const source = await service.outside.stalling(`source-${jobId}.mp4`, video);
  const signer = new UrlSigner(deriveSecrets(SECRET_KEY).urlSigning, service.url);
  const upload = await service.call('POST', '/v1/uploads', {
    headers: { ...TUS, 'upload-length': String(TUS_BYTES) },
  });
  return {
    jobId,
    downloadUrl: signer.downloadUrl(jobId, Date.now() + 3_600_000),
    batchId: batch.body.data.batchId,
    uploadId: upload.body.data.file,
    video,
    sourceUrl: source.url,
    letGo: source.letGo,
    hookUrl: service.outside.hook('walk').url,
    port: new URL(service.url).port,
  };
}
