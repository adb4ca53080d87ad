// Drawing sound. The library does the drawing; what it draws are peaks that are made here, at a sample rate that is enough to look at.
import WaveSurfer from './lib/wavesurfer.js';
import { onColours } from './theme.js';

/** CSS pixels. */
const HEIGHT = 96;
const PEAKS = 1200;
const LOOKING_RATE_HZ = 8000;
/** What is read is all in memory at once. */
export const MOST_BYTES = 64_000_000;
/** And so is what is decoded, at the sound's own rate before the browser makes it 8 kHz: 0.4 MB a second of stereo, however small the file. */
export const MOST_SECONDS = 30 * 60;
/** What is drawn where nothing could be decoded. */
const FLAT = [new Array(PEAKS).fill(0)];

/**
 * The loudest moments of a sound in order, each 0 to 1. Rejects where the browser cannot decode it, or where there is too much of it.
 * @param {Blob} blob of a sound or of a video with one @param {number} duration seconds
 */
export async function peaksOf(blob, duration) {
  if (blob.size > MOST_BYTES || duration > MOST_SECONDS) {
    throw new Error('too large to look at');
  }
  const context = new OfflineAudioContext(1, 1, LOOKING_RATE_HZ);
  const sound = await context.decodeAudioData(await blob.arrayBuffer());
  const samples = sound.getChannelData(0);
  const width = Math.max(1, Math.floor(samples.length / PEAKS));
  const peaks = [];
  for (let at = 0; at < samples.length; at += width) {
    let most = 0;
    for (let index = at; index < Math.min(at + width, samples.length); index += 1) {
      most = Math.max(most, Math.abs(samples[index]));
    }
    peaks.push(most);
  }
  return [peaks];
}

/** The same of a waveform that a job made. @param {{ data: number[] }} waveform pairs of −128 to 127 */
export function peaksOfWaveform({ data }) {
  const width = 2 * Math.max(1, Math.floor(data.length / 2 / PEAKS));
  const peaks = [];
  for (let at = 0; at < data.length; at += width) {
    peaks.push(data.slice(at, at + width).reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 128);
  }
  return [peaks];
}

/**
 * A drawing that follows a player. It shows a line until `setPeaks` is called.
 * @param {HTMLElement} container @param {HTMLMediaElement} media @param {number} duration seconds @param {object} options of the library
 */
export function drawWaveform(container, media, duration, options = {}) {
  let peaks = FLAT;
  const surfer = WaveSurfer.create({
    container,
    media,
    duration,
    peaks,
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
    cspNonce: document.querySelector('script[nonce]').nonce,
    ...coloursOf(container),
    ...options,
  });
  const endColours = onColours(() => surfer.setOptions(coloursOf(container)));
  return {
    surfer,
    setPeaks(found) {
      peaks = found;
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
function coloursOf(container) {
  const probe = document.createElement('span');
  container.append(probe);
  const read = (name) => {
    probe.className = `colour-${name}`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    waveColor: read('wave'),
    progressColor: read('wave-heard'),
    cursorColor: read('wave-heard'),
  };
  probe.remove();
  return colours;
}
