/**
 * What the version before `outputs` wrote is read as it was, and a request of then is the same request (decisions A8). It stands here as it was written: it
 * is made by no fixture, which would follow the version of now.
 */
import { expect, it } from 'vitest';
import { JobRequest, UploadedJobRequest } from '../../src/contract/job-request.ts';
import { outputsOf } from '../../src/contract/output-request.ts';
import { ExtractPayload, ExtractResult, filesOf, storageKeysOf } from '../../src/queue/payloads.ts';

const JOB = 'job_5f0c2a9be41d7783';

it('a queued payload', () => {
  const output = { format: 'mp3', copy: 'auto', normalize: false, preserveMetadata: true };
  const written = {
    version: 1,
    isProvisional: true,
    tenant: 'tenant01',
    source: { type: 'url', url: 'https://media.example/talk.mp4' },
    output,
    options: { priority: 'normal' },
    batchId: null,
    retryOf: null,
  };
  const payload = ExtractPayload.parse(written);
  expect(payload).toEqual(written);
  expect(outputsOf(payload)).toEqual([{ ...output, name: 'audio' }]);
});

it('a result, with its voice message', () => {
  const outputFile = {
    storageKey: `files/${JOB}/token.mp3`,
    filename: 'talk.mp3',
    size: 1,
    duration: 1,
    format: 'mp3',
    bitrate: '192k',
    codec: 'mp3',
    channels: 2,
    sampleRate: 48_000,
    sha256: '0'.repeat(64),
    expiresAt: '2100-01-01T00:00:00.000Z',
    copied: false,
  };
  const voice = { storageKey: `files/${JOB}/token.voice.ogg`, fitsVoiceBubble: true, seconds: 1 };
  const inputFile = { name: 'talk.mp4', size: 1, duration: 1, format: 'mp4', tracks: [] };
  const result = ExtractResult.parse({ version: 1, inputFile, outputFile, voice });
  expect(filesOf(result)).toEqual([{ name: 'audio', ...outputFile }]);
  expect(storageKeysOf(result)).toEqual([outputFile.storageKey, voice.storageKey]);
});

it('a request with an Idempotency-Key, which is bound to its text', () => {
  const options = { priority: 'normal', filename: 'talk' };
  const request = {
    output: { normalize: true, format: 'mp3', loudness: -20, acceptTruncated: true, track: 'en' },
    source: { url: 'https://media.example/talk.mp4', type: 'url' },
    options,
  };
  expect(JSON.stringify(JobRequest.parse(request))).toBe(
    '{"source":{"type":"url","url":"https://media.example/talk.mp4"},"output":{"format":"mp3","copy":"auto","normalize":true,"loudness":-20,"track":"en","acceptTruncated":true,"preserveMetadata":true},"options":{"filename":"talk","priority":"normal"}}',
  );
  const { source: _, ...sentAlong } = request;
  expect(JSON.stringify(UploadedJobRequest.parse(sentAlong))).toBe(
    '{"output":{"format":"mp3","copy":"auto","normalize":true,"loudness":-20,"track":"en","acceptTruncated":true,"preserveMetadata":true},"options":{"filename":"talk","priority":"normal"}}',
  );
});
