/** Drawing sound. The library does the drawing; what it draws are peaks that are made here, at a sample rate that is enough to look at. */
import type WaveSurfer from 'wavesurfer.js';
import type { WaveSurferOptions } from 'wavesurfer.js';
import { onColours } from './theme.ts';

/** CSS pixels. */
const HEIGHT = 96;
const PEAKS = 1200;
const LOOKING_RATE_HZ = 8000;
/** What is read is all in memory at once. */
export const MOST_BYTES = 64_000_000;
/** And so is what is decoded, at the sound's own rate before the browser makes it 8 kHz: 0.4 MB a second of stereo, however small the file. */
export const MOST_SECONDS = 30 * 60;

/** The loudest moments in order, each 0 to 1, of each channel that is drawn. */
export type Peaks = number[][];

/** What is drawn where nothing could be decoded. */
const FLAT: Peaks = [new Array<number>(PEAKS).fill(0)];

export interface Drawing {
  readonly surfer: WaveSurfer;
  /** Until then a line is shown. */
  setPeaks(peaks: Peaks): void;
  /** Removes the drawing; the player stays as it is. */
  end(): void;
}

/**
 * The loudest moments of a sound. Rejects where the browser cannot decode it, or where there is too much of it.
 * @param blob of a sound or of a video with one
 * @param duration seconds
 */
export async function peaksOf(blob: Blob, duration: number): Promise<Peaks> {
  if (blob.size > MOST_BYTES || duration > MOST_SECONDS) throw new Error('too large to look at');
  const context = new OfflineAudioContext(1, 1, LOOKING_RATE_HZ);
  const sound = await context.decodeAudioData(await blob.arrayBuffer());
  const samples = sound.getChannelData(0);
  const width = Math.max(1, Math.floor(samples.length / PEAKS));
  const peaks: number[] = [];
  for (let at = 0; at < samples.length; at += width) {
    peaks.push(loudest(samples.subarray(at, at + width)));
  }
  return [peaks];
}

/** The same of a waveform that a job made. @param waveform its JSON; `data` holds pairs of −128 to 127 */
export function peaksOfWaveform({ data }: { readonly data: readonly number[] }): Peaks {
  const width = 2 * Math.max(1, Math.floor(data.length / 2 / PEAKS));
  const peaks: number[] = [];
  for (let at = 0; at < data.length; at += width) {
    peaks.push(loudest(data.slice(at, at + width)) / 128);
  }
  return [peaks];
}

function loudest(samples: Iterable<number>): number {
  let most = 0;
  for (const sample of samples) most = Math.max(most, Math.abs(sample));
  return most;
}

/**
 * A drawing that follows a player; the library is fetched for the first one.
 * @param duration seconds
 * @param options of the library, over those that all drawings have
 */
export async function drawWaveform(
  container: HTMLElement,
  media: HTMLMediaElement,
  duration: number,
  options: Partial<WaveSurferOptions> = {},
): Promise<Drawing> {
  const { default: Surfer } = await import('wavesurfer.js');
  const surfer = Surfer.create({
    container,
    media,
    duration,
    peaks: FLAT,
    height: HEIGHT,
    barWidth: 3,
    barGap: 2,
    barRadius: 3,
    barMinHeight: 2,
    cursorWidth: 2,
    normalize: true,
    interact: false,
    dragToSeek: false,
    hideScrollbar: true,
    // The page's policy lets in no other style than one with the nonce of this answer.
    cspNonce: document.querySelector<HTMLScriptElement>('script[nonce]')?.nonce ?? '',
    ...coloursOf(container),
    ...options,
  });
  const endColours = onColours(() => surfer.setOptions(coloursOf(container)));
  return {
    surfer,
    setPeaks(peaks) {
      surfer.setOptions({ peaks, duration });
      void surfer.load(media.src, peaks, duration);
    },
    end() {
      endColours();
      surfer.destroy();
    },
  };
}

/** A canvas knows no custom properties, so the colours are read off elements that do. */
function coloursOf(
  container: HTMLElement,
): Pick<WaveSurferOptions, 'waveColor' | 'progressColor' | 'cursorColor'> {
  const probe = document.createElement('span');
  container.append(probe);
  const read = (name: string): string => {
    probe.className = `colour-${name}`;
    return getComputedStyle(probe).color;
  };
  const waveColor = read('wave');
  const heard = read('wave-heard');
  probe.remove();
  return { waveColor, progressColor: heard, cursorColor: heard };
}
