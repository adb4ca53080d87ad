/** Transcribes a whole recording at once, for the command line without a service. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { writePcm } from 'soundpost-media/notes/pcm-file';
import { type Transcriber, transcribePart } from './client.ts';
import { nextPart, openRecording, type Transcript, transcriptOf, withHeard } from './recording.ts';

interface TranscribeOptions {
  readonly transcriber: Transcriber;
  /** WAV: 16 kHz, mono, 16 bits. */
  readonly path: string;
  /** A folder for the parts. */
  readonly workspace: string;
  /** Its start on the source's clock, seconds. */
  readonly startOffsetSeconds: number;
  /** BCP 47; undefined: the transcriber detects it. */
  readonly language?: string | undefined;
  readonly signal: AbortSignal;
  /** Of a part; default OpenAI's limit. */
  readonly mostPartBytes?: number;
  /** Transcribed share, 0 … 1. */
  readonly onProgress?: (fraction: number) => void;
}

/** @throws the transcriber's error for the first failed part; the signal's reason */
export async function transcribe(options: TranscribeOptions): Promise<Transcript> {
  const { transcriber, path, workspace, language, signal, mostPartBytes, onProgress } = options;
  let recording = await openRecording(createReadStream(path, { signal }), mostPartBytes);
  for (let part = nextPart(recording); part !== undefined; part = nextPart(recording)) {
    const { dataAt, samples, heard, parts } = recording;
    const slice = await writePcm({ path, dataAt, samples }, [part.stretch], join(workspace, 'part.wav'));
    const answer = await transcribePart(
      transcriber,
      { path: slice.path, seconds: part.seconds, language },
      signal,
    );
    if (answer.kind !== 'heard') {
      throw new Error(answer.said ? `${answer.error}: ${answer.said}` : answer.error);
    }
    recording = withHeard(recording, answer.heard);
    onProgress?.((heard.length + 1) / parts.length);
  }
  return transcriptOf(recording, options.startOffsetSeconds, language);
}
