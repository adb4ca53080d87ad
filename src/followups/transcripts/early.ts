/**
 * Hears the first parts of a recording while the rest is decoded, for callers that wait (decisions
 * F1). What is not heard until then is left to the follow-up, and so are retries.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TranscriptRequest } from 'soundpost-contract/output-request';
import type { Stretch } from 'soundpost-media/notes/pauses';
import {
  bytesOf,
  levelsOf,
  openPcm,
  PCM_RATE,
  WINDOW_SAMPLES,
  windowsWithin,
  writePcm,
} from 'soundpost-media/notes/pcm-file';
import type { TryPlaces } from '../places.ts';
import type { PartHeard } from './answer.ts';
import type { PartAnswer, Transcriber } from './client.ts';
import { type HeardBefore, LARGEST_PART_BYTES, openRecording, partsOf, type Recording } from './recording.ts';
import { ask, type TranscriptServices } from './turn.ts';

export interface EarlyServices
  extends Pick<TranscriptServices, 'transcriber' | 'spend' | 'logger' | 'observer' | 'tracing'> {
  /** What is left of the key's minutes of the day, in seconds. Undefined: no limit. */
  readonly leftSeconds?: ((tenant: string) => Promise<number>) | undefined;
  readonly places: Pick<TryPlaces, 'take' | 'leave'>;
  readonly claimOf: (recording: EarlyRecording) => Parameters<TryPlaces['take']>[0];
  /** Called after each exchange with the transcriber. */
  readonly onTried?: (recording: EarlyRecording, answer: PartAnswer, startedAtMs: number) => unknown;
  /** Of a part; default OpenAI's limit. */
  readonly mostPartBytes?: number;
}

export interface EarlyRecording {
  readonly jobId: string;
  readonly tenant: string;
  readonly output: TranscriptRequest;
  /** Of a WAV file that is being written, or will be: 16 kHz, mono, 16 bits. */
  readonly path: string;
  /** How long it will be, as the source says. */
  readonly seconds: number;
  /** For the part that is sent. */
  readonly workspace: string;
  readonly signal: AbortSignal;
  readonly makeRoom: (bytes: number) => Promise<void>;
}

/** Disposal aborts the part that is being heard. */
export interface EarlyHearing extends AsyncDisposable {
  /**
   * To be called once the file is complete: waits for the part that is being heard.
   * @returns undefined: what was heard is of no use
   * @throws the reason of the recording's signal
   */
  end(): Promise<Recording | undefined>;
}

const LOOK_FILE_MS = 200;
const LOOK_PLACE_MS = 1000;

/** Undefined for a recording of one part, or of more than what is left of the key's day. */
export async function hearEarly(
  recording: EarlyRecording,
  services: EarlyServices,
): Promise<EarlyHearing | undefined> {
  const { jobId, tenant, seconds, path, signal, makeRoom } = recording;
  const { mostPartBytes = LARGEST_PART_BYTES, leftSeconds, transcriber, logger } = services;
  const most = windowsWithin(mostPartBytes);
  if (transcriber === undefined || seconds * PCM_RATE <= most * WINDOW_SAMPLES) return undefined;
  // Whole, before the first part is sent: none is paid for without a text in the end.
  if (leftSeconds !== undefined && (await leftSeconds(tenant)) < seconds) return undefined;
  await makeRoom(mostPartBytes);
  const givenUp = new AbortController();
  const over = AbortSignal.any([signal, givenUp.signal]);
  const onFailure = (err: unknown): undefined => {
    if (!over.aborted) logger.warn({ jobId, err }, 'a recording was not heard while it is decoded');
  };
  const parts = new EarlyParts(recording, { ...services, transcriber }, most, over);
  const hearing = parts.hear().catch(onFailure);
  return {
    async end() {
      parts.decoded.abort();
      const before = () => hearing.then(() => parts.unchanged());
      const opened = openRecording(createReadStream(path, { signal }), mostPartBytes, before);
      const ended = await opened.catch(onFailure);
      await hearing;
      signal.throwIfAborted();
      return ended;
    },
    async [Symbol.asyncDispose]() {
      givenUp.abort();
      await hearing;
    },
  };
}

interface EarlyPart {
  readonly stretch: Stretch;
  /** Of its samples. */
  readonly sha256: string;
  readonly heard: PartHeard;
}

class EarlyParts {
  /** To be aborted when the file is complete: no further part is begun. */
  readonly decoded = new AbortController();
  readonly #recording: EarlyRecording;
  readonly #services: EarlyServices & { readonly transcriber: Transcriber };
  readonly #most: number;
  readonly #signal: AbortSignal;
  readonly #parts: EarlyPart[] = [];
  #spentSeconds = 0;

  constructor(
    recording: EarlyRecording,
    services: EarlyServices & { readonly transcriber: Transcriber },
    most: number,
    signal: AbortSignal,
  ) {
    this.#recording = recording;
    this.#services = services;
    this.#most = most;
    this.#signal = signal;
  }

  /** Part after part, until the file is complete or a part is not heard. */
  async hear(): Promise<void> {
    while (!this.decoded.signal.aborted) {
      const part = await this.#next();
      if (part === undefined) {
        await this.#pause(LOOK_FILE_MS);
        continue;
      }
      const heard = await this.#inTurn(part);
      if (heard === undefined) return;
      this.#parts.push({ ...part, heard });
    }
  }

  /** What was heard of the complete file: a decode that began anew may have made other samples. */
  async unchanged(): Promise<HeardBefore> {
    const { path } = this.#recording;
    const pcm = await openPcm(path);
    const kept: EarlyPart[] = [];
    for (const part of this.#parts) {
      if ((await sha256Of(path, bytesOf(pcm, part.stretch))) !== part.sha256) break;
      kept.push(part);
    }
    return {
      parts: kept.map(({ stretch }) => stretch),
      heard: kept.map(({ heard }) => heard),
      spentSeconds: this.#spentSeconds,
    };
  }

  /** Once the one after it has begun. */
  async #next(): Promise<(Omit<EarlyPart, 'heard'> & { path: string; seconds: number }) | undefined> {
    const { path, workspace } = this.#recording;
    // It may not be there yet, or have no head.
    const pcm = await openPcm(path).catch(() => undefined);
    const from = this.#parts.at(-1)?.stretch.to ?? 0;
    const to = from + this.#most + 1;
    if (pcm === undefined || pcm.samples < to * WINDOW_SAMPLES) return undefined;
    const levels = await levelsOf(pcm, this.#signal, { from, to });
    const [first] = partsOf(levels, this.#most);
    // Shorter if the decode begins anew in this moment.
    if (first === undefined || levels.length <= this.#most) return undefined;
    const stretch = { from, to: from + first.to };
    const { dataAt, samples } = pcm;
    const part = await writePcm({ path, dataAt, samples }, [stretch], join(workspace, 'part.wav'));
    const bytes = 2 * part.samples;
    const sha256 = await sha256Of(part.path, { at: part.dataAt, bytes });
    return { stretch, sha256, path: part.path, seconds: part.samples / PCM_RATE };
  }

  /** Waits for a place as any part does. Undefined if there is none in time, or it is not heard. */
  async #inTurn(part: { readonly path: string; readonly seconds: number }): Promise<PartHeard | undefined> {
    const { places, claimOf } = this.#services;
    const claim = claimOf(this.#recording);
    let answer: PartAnswer | undefined;
    try {
      while (!(await places.take(claim, async () => undefined))) {
        await this.#pause(LOOK_PLACE_MS);
        if (this.decoded.signal.aborted) return undefined;
      }
      answer = await this.#ask(part);
      return answer?.kind === 'heard' ? answer.heard : undefined;
    } finally {
      // A place that is not left expires.
      await places.leave(claim, answer?.httpStatus).catch(() => undefined);
    }
  }

  async #ask(part: { readonly path: string; readonly seconds: number }): Promise<PartAnswer | undefined> {
    const { spend, transcriber, onTried, logger } = this.#services;
    const { jobId, tenant, output } = this.#recording;
    this.#signal.throwIfAborted();
    if ((await spend?.(tenant, part.seconds)) === false) return undefined;
    this.#spentSeconds += part.seconds;
    const startedAtMs = Date.now();
    const answer = await ask(transcriber, { ...output, ...part }, this.#signal, this.#services);
    if (answer.kind !== 'heard') {
      const { error, said } = answer;
      logger.warn({ jobId, error, said }, 'the transcriber did not transcribe an early part');
    }
    await onTried?.(this.#recording, answer, startedAtMs);
    return answer;
  }

  async #pause(ms: number): Promise<void> {
    const over = AbortSignal.any([this.#signal, this.decoded.signal]);
    await sleep(ms, undefined, { signal: over }).catch(() => undefined);
    this.#signal.throwIfAborted();
  }
}

async function sha256Of(
  path: string,
  { at, bytes }: { readonly at: number; readonly bytes: number },
): Promise<string> {
  const hash = createHash('sha256');
  if (bytes > 0)
    for await (const chunk of createReadStream(path, { start: at, end: at + bytes - 1 })) hash.update(chunk);
  return hash.digest('hex');
}
