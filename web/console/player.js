// The result as a waveform that can be played. The position is a real slider over it, so that it works by keyboard and is read aloud.
import { reachable } from './connection.js';
import { byId } from './page.js';
import { icon, spoken } from './shared/elements.js';
import { drawWaveform, MOST_BYTES, MOST_SECONDS, peaksOf, peaksOfWaveform } from './waveform.js';
import { time } from './words.js';

const play = byId('player-play');
const position = byId('player-position');

/** What is in the player, or null. */
let loaded = null;
let told = () => undefined;

/** @param {(seconds: number) => void} listener is told where the sound is */
export function onPosition(listener) {
  told = listener;
}

export function playFrom(at) {
  if (loaded !== null) {
    loaded.media.currentTime = at;
    showPosition(at);
    if (loaded.media.paused) {
      play.click();
    }
  }
}

/** @param outputFile of a job @param waveformFile of the same sound, where the job made one */
export function loadPlayer({ url, duration, size, filename }, waveformFile) {
  if (loaded?.url === url) {
    return;
  }
  closePlayer();
  const media = new Audio(reachable(url));
  media.preload = 'metadata';
  position.max = String(duration);
  byId('player-error').textContent = '';
  media.addEventListener('play', () => showButton('pause', 'Pause'));
  media.addEventListener('pause', () => showButton('play', 'Play'));
  media.addEventListener('playing', follow);
  media.addEventListener('ended', () => showPosition(duration));
  media.addEventListener('error', () => {
    byId('player-error').textContent = `This browser cannot play ${filename}. Download it instead.`;
  });
  const waveform = drawWaveform(byId('player-drawing'), media, duration);
  loaded = { url, media, duration, waveform, waveformUrl: waveformFile?.url };
  showButton('play', 'Play');
  showPosition(0);
  if (waveformFile !== undefined || (size <= MOST_BYTES && duration <= MOST_SECONDS)) {
    void draw(loaded);
  }
}

export function closePlayer() {
  if (loaded === null) {
    return;
  }
  loaded.media.pause();
  loaded.media.removeAttribute('src');
  loaded.waveform.end();
  loaded = null;
}

async function peaksFor({ url, waveformUrl, duration }) {
  const response = await fetch(reachable(waveformUrl ?? url));
  return waveformUrl === undefined
    ? peaksOf(await response.blob(), duration)
    : peaksOfWaveform(await response.json());
}

/** Where the sound cannot be had or decoded, a line stays. */
async function draw(drawing) {
  try {
    const peaks = await peaksFor(drawing);
    if (loaded === drawing) {
      drawing.waveform.setPeaks(peaks);
    }
  } catch {
    // The player works without.
  }
}

play.addEventListener('click', () => {
  if (loaded === null) {
    return;
  }
  const { media } = loaded;
  if (media.paused) {
    media.play().catch((error) => {
      if (error.name !== 'AbortError') {
        byId('player-error').textContent = `Cannot play: ${error.message}`;
      }
    });
  } else {
    media.pause();
  }
});

position.addEventListener('input', () => {
  if (loaded !== null) {
    loaded.media.currentTime = Number(position.value);
    showPosition(Number(position.value));
  }
});

/** Keeps the position in step with the sound while it plays. */
function follow() {
  if (loaded === null) {
    return;
  }
  const { media } = loaded;
  if (!media.paused) {
    showPosition(media.currentTime);
    requestAnimationFrame(follow);
  }
}

function showPosition(at) {
  const { duration } = loaded;
  told(at);
  position.value = String(at);
  position.setAttribute('aria-valuetext', `${spoken(at)} of ${spoken(duration)}`);
  byId('player-time').textContent = `${time(Math.floor(at))} / ${time(Math.round(duration))}`;
}

function showButton(name, label) {
  play.replaceChildren(icon(name));
  play.setAttribute('aria-label', label);
}
