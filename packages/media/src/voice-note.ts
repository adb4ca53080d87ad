/** Makes a voice message of any audio, with length and waveform (decisions A3 and B "Audio"). */
import { rm } from 'node:fs/promises';
import { extractAudio } from './extract.ts';
import { MediaFailure } from './failure.ts';
import { runOnInput } from './input-run.ts';
import { BrokenOgg } from './ogg/pages.ts';
import { packVoiceNote } from './ogg/voice-form.ts';
import { WAVEFORM_RATE, WaveformMeter } from './peaks.ts';
import { planOutput } from './plan.ts';
import { type Probe, probe } from './probe.ts';
import type { MediaTools } from './run.ts';

interface VoiceNoteOptions {
  readonly tools: MediaTools;
  /** A regular local file. */
  readonly input: string;
  /** The target of the voice note, unless the input already is one. */
  readonly output: string;
  /** Temporary folder, on the output's file system. */
  readonly workspace: string;
  /** Whether any mono Ogg Opus is used unchanged, even if phones cannot play it; default false. */
  readonly keepsOpus?: boolean;
  readonly signal: AbortSignal;
  /** Longest audio that is accepted, seconds; default 6 h. */
  readonly maxAudioSeconds?: number;
}

interface VoiceNote {
  /** The output, or the input itself if it passed through. */
  readonly path: string;
  /** Rounded, at least 1: as shown in the message. */
  readonly seconds: number;
  /** Counted from the decoded samples. */
  readonly durationSeconds: number;
  /** 64 values, 0 … 100. */
  readonly waveform: Uint8Array;
  /** The input had a voice note's form and is used unchanged. */
  readonly passedThrough: boolean;
}

const MAX_AUDIO_SECONDS = 6 * 3600;
const OPUS_RATE = 48_000;

/** Leaves no output if it fails. @throws {MediaFailure} when the input is not audio. */
export async function prepareVoiceNote(options: VoiceNoteOptions): Promise<VoiceNote> {
  const { tools, input, output, workspace, signal, maxAudioSeconds = MAX_AUDIO_SECONDS } = options;
  const source = await probe(tools, input, { signal });
  const found = isMonoOpus(source) ? (options.keepsOpus ? 'note' : await mend(options)) : 'other';
  const passedThrough = found === 'note';
  const path = passedThrough ? input : output;
  if (found === 'other') {
    const plan = planOutput(
      {
        format: 'voice',
        copy: 'auto',
        normalize: false,
        acceptTruncated: true,
        preserveMetadata: false,
      },
      source,
    );
    await extractAudio({
      tools,
      input,
      probe: source,
      outputs: [{ plan, path: output }],
      workspace,
      signal,
      maxAudioSeconds,
    });
  }
  const measured = { tools, file: path, demuxer: 'ogg', signal, maxAudioSeconds };
  const { durationSeconds, bars } = await waveform(measured).catch(async (error: unknown) => {
    if (!passedThrough) {
      await rm(output, { force: true });
    }
    throw error;
  });
  return {
    path,
    seconds: Math.max(1, Math.round(durationSeconds)),
    durationSeconds,
    waveform: bars,
    passedThrough,
  };
}

/** Leaves the output only if it is `mended`: the input, in the form of a voice note. */
async function mend({
  input,
  output,
  signal,
  maxAudioSeconds = MAX_AUDIO_SECONDS,
}: VoiceNoteOptions): Promise<'note' | 'mended' | 'other'> {
  try {
    const maxSamples = maxAudioSeconds * OPUS_RATE;
    const { isNative, isUntouched } = await packVoiceNote(input, output, { maxSamples, signal });
    if (isNative && !isUntouched) return 'mended';
    await rm(output);
    return isUntouched ? 'note' : 'other';
  } catch (error) {
    await rm(output, { force: true });
    if (!(error instanceof BrokenOgg)) throw error;
    return 'other';
  }
}

function isMonoOpus({ container, tracks, isAudioOnly }: Probe): boolean {
  const [{ codec, channels }] = tracks;
  return (
    container.demuxer === 'ogg' && isAudioOnly && tracks.length === 1 && codec === 'opus' && channels === 1
  );
}

interface WaveformOptions {
  readonly tools: MediaTools;
  readonly file: string;
  /** ffmpeg's demuxer of the file. */
  readonly demuxer: string;
  readonly signal: AbortSignal;
  readonly maxAudioSeconds: number;
}

/** Decodes the first audio track of a file once, for its length and its 64 bars. */
async function waveform(options: WaveformOptions): Promise<{ durationSeconds: number; bars: Uint8Array }> {
  const { file, demuxer, maxAudioSeconds } = options;
  const meter = new WaveformMeter();
  await runOnInput(
    { ...options, wallLimitMs: 600_000 + maxAudioSeconds * 1000 },
    {
      inputs: [{ file, demuxer }],
      outputs: [
        {
          muxer: 's16le',
          options: [
            ...['-map', '0:a:0', '-filter:a', `asetpts=N/SR/TB,aresample=${WAVEFORM_RATE}`],
            ...['-ac', '1', '-c:a', 'pcm_s16le', '-t', String(maxAudioSeconds + 2)],
          ],
        },
      ],
    },
    () => {},
    (pcm) => meter.push(pcm),
  );
  if (meter.samples === 0) throw new MediaFailure('EXTRACTION_FAILED', 'the audio track has no audio');
  return { durationSeconds: meter.samples / WAVEFORM_RATE, bars: meter.bars() };
}
