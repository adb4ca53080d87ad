/** The files are published under names of this attempt; the result that points to them counts only while the lock is held. */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { formatOf } from '../../contract/formats.ts';
import { attemptFiles } from '../../queue/names.ts';
import type { ExtractResult } from '../../queue/payloads.ts';
import { redisNow } from '../../redis/clock.ts';
import type { Step, StepContext } from '../step.ts';
import { inputFileOf } from './analyze.ts';
import type { ExtractedAudio } from './extract.ts';

export const finalize: Step<ExtractedAudio, ExtractResult> = async (extracted, context) => {
  const { services, workspace, payload, signal } = context;
  const { output, voice, loudness, sourceSeconds, truncated } = extracted.extraction;
  context.report('finalizing', 0);
  const extension = formatOf(payload.output.format).extension;
  signal.throwIfAborted();
  // Beside the publishing, which waits for the disk. The file is opened first, for it is moved away.
  const hashing = hashOf(await open(join(workspace, 'output')), signal);
  // Should the publishing fail, that is the error to know.
  hashing.catch(() => undefined);
  const keys = attemptFiles(context.jobId, context.attemptToken, payload.output.format);
  const publish = (name: string, key: string) =>
    services.insist(signal, () => services.storage.publish(join(workspace, name), key));
  const published = await publish('output', keys.output);
  const voiceFile = voice === null ? null : await publish('voice', keys.voice);
  const sha256 = await hashing;
  return {
    version: 1,
    inputFile: inputFileOf(extracted, sourceSeconds),
    warnings: truncated === null ? [] : [{ code: 'TRUNCATED', message: truncated }],
    outputFile: {
      storageKey: published.key,
      filename: `${baseName(extracted, context)}.${extension}`,
      size: published.sizeBytes,
      duration: output.durationSeconds,
      format: payload.output.format,
      bitrate: `${Math.round(output.bitrateKbps)}k`,
      codec: output.codec,
      channels: output.channels,
      sampleRate: output.sampleRate,
      sha256,
      expiresAt: new Date(redisNow() + services.limits.outputTtlSeconds * 1000).toISOString(),
      copied: output.copied,
      timeline: { startOffset: output.startOffsetSeconds, filledSeconds: output.filledSeconds },
      ...(loudness === null ? {} : { loudness }),
    },
    voice:
      voice === null || voiceFile === null
        ? null
        : {
            storageKey: voiceFile.key,
            fitsVoiceBubble: voice.fitsVoiceBubble,
            seconds: voice.durationSeconds,
            ...(voice.parts.length > 1
              ? {
                  parts: voice.parts.map(({ offset, sizeBytes, durationSeconds, fitsVoiceBubble }) => ({
                    ...{ offset, size: sizeBytes, seconds: durationSeconds, fitsVoiceBubble },
                  })),
                }
              : {}),
          },
  };
};

/** The caller's choice, else the source's name without its extension. */
function baseName({ video }: ExtractedAudio, { payload }: StepContext): string {
  return payload.options.filename ?? (video.name.replace(/\.[^.]{1,10}$/, '') || 'audio');
}

/** Of each of two: one is read into while the other one is hashed. */
const BUFFER_BYTES = 1024 * 1024;

/** Closes the file. A stream would take fresh memory for each chunk, which takes longer than the hashing. */
async function hashOf(file: FileHandle, signal: AbortSignal): Promise<string> {
  await using _closed = file;
  const hash = createHash('sha256');
  let reading = file.read(Buffer.allocUnsafeSlow(BUFFER_BYTES));
  let other = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  for (;;) {
    const { buffer, bytesRead } = await reading;
    if (bytesRead === 0) return hash.digest('hex');
    signal.throwIfAborted();
    reading = file.read(other);
    hash.update(buffer.subarray(0, bytesRead));
    other = buffer;
  }
}
