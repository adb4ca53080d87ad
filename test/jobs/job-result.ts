import { ExtractResult } from '../../src/jobs/payloads.ts';

/** Of a job that was no probe. */
export interface Made extends ExtractResult {
  readonly outputFile: NonNullable<ExtractResult['outputFile']>;
}

export function madeOf(result: ExtractResult): Made {
  const { outputFile } = result;
  if (outputFile === null) throw new Error('a probe makes no file');
  return { ...result, outputFile };
}

/** What a run of the steps returns. */
export function resultOf(jobId: string): Made {
  const result = ExtractResult.parse({
    version: 1,
    inputFile: { name: 'talk.mp4', size: 1, duration: 1, format: 'mp4', tracks: [] },
    warnings: [],
    outputFile: {
      name: 'audio',
      storageKey: `files/${jobId}/one.mp3`,
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
      timeline: { startOffset: 0, filledSeconds: 0 },
      copied: false,
    },
    voice: null,
  });
  return madeOf(result);
}
