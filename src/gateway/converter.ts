/** Converts audio as the public server asks its converter to (decisions F2). */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { ConvertFields } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { OutputRequest } from 'soundpost-contract/output-request';
import type { MediaTools } from 'soundpost-media/run';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { Transcriber } from '../followups/transcripts/client.ts';
import { Semaphore } from '../jobs/semaphore.ts';
import { type AudioInput, asNotAudio, type LocalAudio, materialize, type VoiceNotes } from './voice-notes.ts';

interface ConverterOptions {
  readonly notes: VoiceNotes;
  readonly outbound: Outbound;
  readonly tools: MediaTools;
  readonly transcriber: Transcriber | undefined;
}

/** Of one request. */
export interface Turn {
  readonly workspace: string;
  /** Owner of the share of places. */
  readonly key: string;
  readonly signal: AbortSignal;
}

export interface Input extends LocalAudio {
  /** The form's field that it came in, for errors. */
  readonly field: string;
}

interface Converted {
  readonly path: string;
  readonly durationSeconds: number;
}

const MAX_AUDIO_SECONDS = 6 * 3600;
/** What the public converter's `mp4` is: `-f adts`. */
const FORMATS = { mp3: 'mp3', mp4: 'aac' } as const;

export class Converter {
  readonly #options: ConverterOptions;
  /** Of ffmpeg's runs; a newcomer among the keys gets a place of its own. */
  readonly #places = new Semaphore(availableParallelism(), 1);
  /** Beside TRANSCRIBER_PARTS of the workers. */
  readonly #heard = new Semaphore(1);

  constructor(options: ConverterOptions) {
    this.#options = options;
  }

  /** Writes the audio to the workspace. Throws audio_unreachable. */
  async fetch(field: string, audio: AudioInput, { workspace, signal }: Turn): Promise<Input> {
    const { outbound } = this.#options;
    return { field, ...(await materialize(audio, outbound, workspace, signal, field)) };
  }

  /** Waits for a place. The file lives as long as the workspace. Throws not_audio. */
  async convert(
    input: Input,
    format: ConvertFields['format'],
    { workspace, key, signal }: Turn,
  ): Promise<Converted> {
    const leave = await this.#places.acquire({ key, signal });
    try {
      return format === 'ogg'
        ? await this.#options.notes.prepare(input, { workspace }, signal)
        : await this.#extract(input.path, { format: FORMATS[format], quality: 'medium' }, workspace, signal);
    } catch (error) {
      throw asNotAudio(error, input.field);
    } finally {
      leave();
    }
  }

  /** Throws unsupported without a transcriber. */
  demandTranscriber(): Transcriber {
    const { transcriber } = this.#options;
    if (transcriber !== undefined) return transcriber;
    throw new GatewayError(
      'unsupported',
      'transcribe: there is no transcriber here; leave it out, or have the operator set TRANSCRIBER_URL',
    );
  }

  /** What is said in a converted file. Throws unsupported, network_refused. */
  async transcribe(
    { path }: Converted,
    language: string | undefined,
    { workspace, key, signal }: Turn,
  ): Promise<string> {
    const transcriber = this.demandTranscriber();
    const [{ transcribe }, { writeSubtitles }] = await Promise.all([
      import('../followups/transcripts/transcribe.ts'),
      import('../followups/transcripts/subtitles.ts'),
    ]);
    const leave = await this.#heard.acquire({ key, signal });
    try {
      const form = { format: 'wav', quality: 'low', channels: 1, sampleRate: 16_000 } as const;
      const wav = await this.#extract(path, form, workspace, signal);
      const transcript = await transcribe({
        ...{ transcriber, path: wav.path, workspace, startOffsetSeconds: 0, language, signal },
      }).catch((cause: unknown) => {
        signal.throwIfAborted();
        // Its words are for its operator.
        const message = 'transcribe: the transcriber failed, and the log of the gateway says how';
        throw new GatewayError('network_refused', message, { cause });
      });
      return (await writeSubtitles(transcript, 'txt')).trimEnd();
    } finally {
      leave();
    }
  }

  async #extract(
    input: string,
    asked: Pick<OutputRequest, 'format' | 'quality' | 'channels' | 'sampleRate'>,
    workspace: string,
    signal: AbortSignal,
  ): Promise<Converted> {
    const { tools } = this.#options;
    const [{ probe }, { planOutput }, { extractAudio }] = await Promise.all([
      import('soundpost-media/probe'),
      import('soundpost-media/plan'),
      import('soundpost-media/extract'),
    ]);
    const source = await probe(tools, input, { signal });
    const how = { copy: 'auto', normalize: false, acceptTruncated: true, preserveMetadata: false } as const;
    const plan = planOutput({ ...how, ...asked }, source);
    const path = join(workspace, `converted.${asked.format}`);
    const { sourceSeconds, files } = await extractAudio({
      ...{ tools, input, probe: source, outputs: [{ plan, path }], workspace, signal },
      maxAudioSeconds: MAX_AUDIO_SECONDS,
    });
    return { path, durationSeconds: files[0]?.durationSeconds ?? sourceSeconds };
  }
}
