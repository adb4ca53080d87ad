/** `extract --transcript out.vtt`: writes the spoken text beside the audio. */
import { writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AnyOutputFile, TranscriptFile } from 'soundpost-contract/job';
import { type Subtitles, subtitles } from 'soundpost-contract/transcripts';
import type { TranscriptAudio } from '../jobs/payloads.ts';
import type { Config } from '../process/config.ts';
import { UsageError } from './ending.ts';
import type { Progress } from './progress.ts';
import type { Server } from './server.ts';

/** Name of its output. */
export const TRANSCRIPT_NAME = 'transcript';

/** By the extension, like the audio's format. @throws UsageError */
export function subtitlesOf(path: string): Subtitles {
  const extension = extname(path).slice(1).toLowerCase();
  const found = (Object.keys(subtitles) as Subtitles[]).find(
    (name) => subtitles[name].extension === extension,
  );
  if (found === undefined) {
    const forms = Object.values(subtitles).map((each) => `.${each.extension}`);
    throw new UsageError(`--transcript: "${path}" needs one of these extensions: ${forms.join(', ')}`);
  }
  return found;
}

/** @throws UsageError if none is configured */
export function demandTranscriber({ TRANSCRIBER_URL }: Config): void {
  if (TRANSCRIBER_URL === undefined) {
    throw new UsageError(
      '--transcript: no transcriber is configured; set TRANSCRIBER_URL (docs/how-to/transcripts.md), or use a service that has one with --server',
    );
  }
}

/** The local transcriber's text, as a file in the folder. */
export async function transcribeHere(
  config: Config,
  { path, audio }: { readonly path: string | undefined; readonly audio: TranscriptAudio },
  folder: string,
  signal: AbortSignal,
  progress: Progress,
): Promise<{ readonly path: string; readonly language: string | null }> {
  const [{ transcribe }, { writeSubtitles }] = await Promise.all([
    import('../followups/transcripts/transcribe.ts'),
    import('../followups/transcripts/subtitles.ts'),
  ]);
  if (path === undefined) throw notThere(audio.notMade ?? '');
  progress.show({ step: 'transcribing' });
  const transcript = await transcribe({
    transcriber: {
      url: config.TRANSCRIBER_URL ?? '',
      apiKey: config.TRANSCRIBER_API_KEY,
      model: config.TRANSCRIBER_MODEL,
      timeoutMs: config.TRANSCRIBER_TIMEOUT_SECONDS * 1000,
    },
    path,
    workspace: folder,
    startOffsetSeconds: audio.timeline.startOffset,
    language: audio.language,
    signal,
    onProgress: (fraction) => progress.show({ step: 'transcribing', fraction }),
  });
  const written = join(folder, 'transcript');
  await writeFile(written, await writeSubtitles(transcript, audio.subtitles));
  return { path: written, language: transcript.language };
}

/** A completed job's transcript, once it exists. @param wanted its name. @throws why it failed */
export async function awaitTranscript(
  { client }: Server,
  jobId: string,
  signal: AbortSignal,
  wanted = TRANSCRIPT_NAME,
): Promise<TranscriptFile> {
  for (let pauseMs = 200; ; pauseMs = Math.min(pauseMs * 1.5, 3000)) {
    const job = await client.job(jobId, { signal });
    const state = job.transcripts?.find(({ name }) => name === wanted);
    const file = job.outputFiles.filter(isTranscript).find(({ name }) => name === wanted);
    if (file !== undefined) return file;
    if (state?.status !== 'pending') {
      const why = state?.error?.details ?? state?.error?.message ?? 'the service gave no reason';
      throw notThere(why);
    }
    await delay(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

function notThere(why: string): Error {
  return new Error(`the audio is ready, but the transcript failed: ${why}`);
}

export function isTranscript(file: AnyOutputFile): file is TranscriptFile {
  return file.format === 'transcript';
}
