// @module-tag curl
// @module-tag python3
/** The samples of the API reference, run against the service as who copies them runs them, with ids and addresses of his own. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestService, useClips } from './api-fixture.ts';
import { type SampledOperation, type SampleFolder, sampledOperations, sampleFolder } from './code-samples.ts';

/** Of these the samples need what is not here, or end what the others look at. */
const NOT_RUN = [
  // A failed job; a gateway; the gateway's signature; a delivery that was given up; a receiver at a public address.
  ...['retryJob', 'sendVoiceMessage', 'receiveGatewayEvent', 'replayDelivery', 'testWebhook'],
  // An upload that was begun by tus; events without an end.
  ...['appendToUpload', 'watchJobs'],
];
/** What the others look at comes before, and what ends it after them. */
const FIRST = ['createUpload', 'extractAudio', 'submitBatch'];
const LAST = ['deleteUpload', 'deleteJob', 'revokeKey'];

const clip = useClips('tone.mp4');

describe.each(['curl', 'JavaScript', 'Python'] as const)('the samples in %s', (language) => {
  let service: TestService;
  let folder: SampleFolder;
  let operations: readonly SampledOperation[] = [];
  const own: [pattern: RegExp, value: string][] = [];
  beforeAll(async () => {
    service = await TestService.start();
    folder = await sampleFolder(clip('tone.mp4'));
    const video = await service.outside.file('tone.mp4', clip('tone.mp4'));
    own.push(
      [/YOUR_API_KEY/g, service.key],
      [/(?<=keys\/|rotate\(["']|revoke\(["'])\w+/g, (await service.newKey()).split('_')[1] ?? ''],
      [/https:\/\/example\.com\/hooks\/\w+/g, service.outside.hook('hook').url],
      [/https:\/\/example\.com\/\w+\.(mp4|mkv)/g, video],
    );
    const { body } = await service.call('GET', '/openapi.json', { key: null });
    operations = sampledOperations(body).filter(({ operationId }) => !NOT_RUN.includes(operationId));
  });
  afterAll(async () => {
    await folder[Symbol.asyncDispose]();
    await service.close();
  });

  const named = (names: readonly string[]) =>
    operations.filter(({ operationId }) => names.includes(operationId));

  async function run({ operationId, samples }: SampledOperation): Promise<string> {
    const source = own.reduce((text, [pattern, value]) => text.replaceAll(pattern, value), samples[language]);
    const printed = await folder.run(language, source).catch((error: Error) => {
      throw new Error(`${operationId}: ${error.message}\n${source}`, { cause: error });
    });
    expect(printed.slice(0, 40), operationId).not.toMatch(/success["']?: ?[Ff]alse/);
    return printed;
  }

  it('run', async () => {
    const made = await Promise.all(named(FIRST).map(run));
    for (const kind of ['upl', 'batch', 'job']) {
      const [id = ''] = new RegExp(`\\b${kind}_[0-9a-f]{16}`).exec(made.join('\n')) ?? [];
      expect(id, kind).not.toBe('');
      own.push([new RegExp(`\\b${kind}_[0-9a-f]{16}\\b(?!-)`, 'g'), id]);
    }
    const [, jobId = ''] = own.at(-1) ?? [];
    await service.reaches(jobId, 'completed');
    const others = operations.filter(
      ({ operationId }) => !FIRST.includes(operationId) && !LAST.includes(operationId),
    );
    expect(others.length).toBeGreaterThan(14);
    const printed = new Map<string, string>();
    for (const operation of [...others, ...named(LAST)]) {
      printed.set(operation.operationId, await run(operation));
    }
    for (const name of ['getStatus', 'getJob', 'listJobs', 'watchJob', 'deleteJob']) {
      expect(printed.get(name), name).toContain(jobId);
    }
    expect((await readFile(join(folder.path, 'audio.mp3'))).length).toBeGreaterThan(1000);
  }, 300_000);
});
