/** Publishes files under names of this attempt; the result counts only while the lock is held. */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { FormatName } from 'soundpost-contract/formats';
import { type NamedOutput, outputsOf, type TranscriptRequest } from 'soundpost-contract/output-request';
import { fileKindOf } from 'soundpost-contract/transcripts';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Extraction } from 'soundpost-media/extract';
import type { Recording } from '../../followups/transcripts/recording.ts';
import { attemptFiles, besideAudio } from '../../jobs/names.ts';
import type { ExtractResult, StoredFile, TranscriptAudio } from '../../jobs/payloads.ts';
import type { Step, StepContext } from '../step.ts';
import { inputFileOf } from './analyze.ts';
import { type ExtractedAudio, outputPath } from './extract.ts';
import { warningsOf } from './warnings.ts';

interface HeardAudio extends ExtractedAudio {
  /** The parts of its recording that were heard while it was decoded. */
  readonly heard?: Recording | undefined;
}

export const finalize: Step<HeardAudio, ExtractResult> = async (extracted, context) => {
  const { services, workspace, payload, signal } = context;
  const { voice, sourceSeconds } = extracted.extraction;
  context.report('finalizing', 0);
  signal.throwIfAborted();
  const asked = outputsOf(payload);
  const keys = attemptFiles(context.jobId, context.attemptToken, asked);
  const publish = (path: string, key: string) =>
    services.retryUntilUp(signal, () => services.storage.publish(path, key));
  const published: ((expiresAt: string) => StoredFile)[] = [];
  const transcripts: TranscriptAudio[] = [];
  for (const [nth, output] of asked.entries()) {
    const key = keys.outputs[nth];
    if (key === undefined) throw new Error(`the output ${output.name} has no place in the storage`);
    const path = outputPath(workspace, output.name);
    const filename = filenameOf(output, extracted, context);
    if (output.format === 'transcript') {
      const audio = transcriptAudio(output, extracted, { storageKey: key, filename });
      if (audio.notMade === undefined && audio.heardAs === undefined) {
        await publish(path, key);
        await keepHeard(extracted.heard, audio, context);
      }
      transcripts.push(audio);
      continue;
    }
    const file = fileOf(extracted, output.name);
    // Hashed while publishing waits for the disk. Opened first, because publishing moves the file.
    const hashing = hashOf(await open(path), signal);
    // If publishing fails, report its error, not the hash's.
    hashing.catch(() => undefined);
    const { key: storageKey, sizeBytes: size } = await publish(path, key);
    const sha256 = await hashing;
    published.push((expiresAt) =>
      storedFile(output, file, { storageKey, size, filename, expiresAt, sha256 }),
    );
  }
  const voiceFile = voice === null ? null : await publish(join(workspace, 'voice'), keys.voice);
  // Counted from now, when all files exist: publishing waits while the storage is down.
  const expiresAt = new Date(redisNow() + services.limits.outputTtlSeconds * 1000).toISOString();
  const [outputFile, ...otherFiles] = published.map((stored) => stored(expiresAt));
  if (outputFile?.format === 'waveform') throw new Error('no audio was made');
  return {
    version: 1,
    inputFile: inputFileOf(extracted, sourceSeconds),
    warnings: warningsOf(extracted),
    outputFile: outputFile ?? null,
    ...(otherFiles.length === 0 ? {} : { otherFiles }),
    ...(transcripts.length === 0 ? {} : { transcripts }),
    voice: voice && voiceFile && voiceOf(voice, voiceFile.key),
  };
};

/** Where the follow-up goes on from. */
async function keepHeard(
  heard: Recording | undefined,
  audio: TranscriptAudio,
  { services, signal }: StepContext,
): Promise<void> {
  if (heard === undefined) return;
  const { writeHeard } = await import('../../followups/transcripts/turn.ts');
  await services.retryUntilUp(signal, () => writeHeard(services.storage, besideAudio(audio).heard, heard));
}

function voiceOf(
  { parts, ...voice }: NonNullable<Extraction['voice']>,
  storageKey: string,
): NonNullable<ExtractResult['voice']> {
  const notes = parts.map(({ offset, sizeBytes, durationSeconds, fitsVoiceBubble }) => ({
    ...{ offset, size: sizeBytes, seconds: durationSeconds, fitsVoiceBubble },
  }));
  return {
    storageKey,
    fitsVoiceBubble: voice.fitsVoiceBubble,
    seconds: voice.durationSeconds,
    ...(parts.length > 1 ? { parts: notes } : {}),
  };
}

type MadeFile = Extraction['files'][number];

function storedFile(
  { name, format }: Exclude<NamedOutput, TranscriptRequest>,
  file: MadeFile,
  published: Pick<StoredFile, 'storageKey' | 'size' | 'filename' | 'expiresAt' | 'sha256'>,
): StoredFile {
  const about = { name, ...published, duration: file.durationSeconds, timeline: timelineOf(file) };
  return format === 'waveform' ? { ...about, format } : { ...about, ...soundOf(file, format) };
}

/** A transcript that was not made is reported like any other. */
function transcriptAudio(
  { name, subtitles, language, task, prompt, temperature, words }: TranscriptRequest,
  extracted: ExtractedAudio,
  published: Pick<TranscriptAudio, 'storageKey' | 'filename'>,
): TranscriptAudio {
  const heardAs = extracted.heardAs.get(name);
  const heard = heardAs ?? name;
  // Only the transcription door makes jobs without audio (decisions F1).
  const isAwaited = extracted.outputs.every(({ plan }) => plan.formatName === 'transcript');
  const asked = {
    ...{ subtitles, language, task, prompt, temperature, words },
    ...(isAwaited && { isAwaited }),
  };
  const about = { name, ...published, ...(heardAs && { heardAs }), ...asked };
  const notMade = extracted.notMade.find((one) => one.name === heard)?.why;
  return notMade === undefined
    ? { ...about, timeline: timelineOf(fileOf(extracted, heard)) }
    : { ...about, timeline: { startOffset: 0, filledSeconds: 0 }, notMade };
}

function fileOf({ outputs, extraction }: ExtractedAudio, name: string): MadeFile {
  const file = extraction.files[outputs.findIndex((output) => output.name === name)];
  if (file === undefined) throw new Error(`the output ${name} was not made`);
  return file;
}

function timelineOf({ startOffsetSeconds, filledSeconds }: MadeFile): TranscriptAudio['timeline'] {
  return { startOffset: startOffsetSeconds, filledSeconds };
}

function filenameOf(output: NamedOutput, extracted: ExtractedAudio, context: StepContext): string {
  const ending = outputsOf(context.payload).length > 1 ? `-${output.name}` : '';
  return `${baseName(extracted, context)}${ending}.${fileKindOf(output).extension}`;
}

/** Audio properties of a file. */
function soundOf(file: MadeFile, format: FormatName) {
  return {
    format,
    bitrate: `${Math.round(file.bitrateKbps)}k`,
    codec: file.codec,
    channels: file.channels,
    sampleRate: file.sampleRate,
    copied: file.copied,
    ...(file.loudness === null ? {} : { loudness: file.loudness }),
  };
}

/** The caller's choice, or the source's name without its extension. */
function baseName({ video }: ExtractedAudio, { payload }: StepContext): string {
  return payload.options.filename ?? (video.name.replace(/\.[^.]{1,10}$/, '') || 'audio');
}

/** One of two buffers: one is filled while the other is hashed. */
const BUFFER_BYTES = 1024 * 1024;

/** Closes the file. Not a stream: allocating each chunk takes longer than hashing it. */
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
