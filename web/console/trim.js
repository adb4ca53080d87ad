// Which part of the source is wanted: two fields, and, for a file that the browser can play, a waveform with a part that can be dragged.
import RegionsPlugin from './lib/regions.js';
import { byId } from './page.js';
import { icon } from './shared/elements.js';
import { drawWaveform, MOST_BYTES, MOST_SECONDS, peaksOf } from './waveform.js';
import { parseTime, size, time } from './words.js';

const start = byId('start');
const end = byId('end');
const fault = byId('trim-error');

/** What is drawn at the moment, or null. */
let drawn = null;

/** Draws a local file. Where the browser cannot play it, the fields are all there is. @param {File} file */
export function drawFile(file) {
  clear();
  const media = new Audio();
  media.preload = 'metadata';
  media.src = URL.createObjectURL(file);
  const drawing = { media, region: null, duration: 0, end: () => URL.revokeObjectURL(media.src) };
  drawn = drawing;
  // Its place is kept from the beginning, so that the fields do not move.
  byId('trim-wave').hidden = false;
  media.addEventListener('error', () => drawn === drawing && giveUp(), { once: true });
  media.addEventListener(
    'loadedmetadata',
    () => drawn === drawing && Number.isFinite(media.duration) && void draw(drawing, file),
    { once: true },
  );
}

/** Forgets the file and what was chosen of it. */
export function clear() {
  drawn?.media.pause();
  drawn?.end();
  drawn = null;
  start.value = '';
  end.value = '';
  fault.textContent = '';
  byId('trim-wave').hidden = true;
  byId('trim-note').textContent = '';
}

/** What was chosen. @returns {{ start?: number, end?: number } | null} null where a field holds no time, which is then said */
export function chosenPart() {
  const from = parseTime(start.value);
  const to = parseTime(end.value);
  fault.textContent = faultOf(from, to);
  const wrong = fault.textContent !== '';
  start.setAttribute('aria-invalid', String(Number.isNaN(from) || wrong));
  end.setAttribute('aria-invalid', String(Number.isNaN(to) || wrong));
  if (wrong) {
    (Number.isNaN(from) ? start : end).focus();
    return null;
  }
  return { ...(from ? { start: from } : {}), ...(to === undefined ? {} : { end: to }) };
}

/** @param {{ start?: number, end?: number }} part */
export function showPart(part) {
  start.value = part.start === undefined ? '' : time(part.start);
  end.value = part.end === undefined ? '' : time(part.end);
}

function faultOf(from, to) {
  if (Number.isNaN(from) || Number.isNaN(to)) {
    return 'A time is seconds, or minutes and seconds: 75 or 1:15.';
  }
  if (to !== undefined && to <= (from ?? 0)) {
    return 'The end must come after the start.';
  }
  return drawn?.duration && from >= drawn.duration
    ? `The file is only ${time(drawn.duration)} long: choose an earlier start.`
    : '';
}

async function draw(drawing, file) {
  const { media } = drawing;
  drawing.duration = media.duration;
  byId('trim-note').textContent = `${time(media.duration)} in all. Drag the edges to trim.`;
  const regions = RegionsPlugin.create();
  const waveform = drawWaveform(byId('trim-drawing'), media, media.duration, {
    plugins: [regions],
    interact: true,
  });
  drawing.end = () => {
    waveform.end();
    URL.revokeObjectURL(media.src);
  };
  const addRegion = () => {
    regions.clearRegions();
    drawing.region = regions.addRegion({
      start: parseTime(start.value) || 0,
      end: parseTime(end.value) || media.duration,
      drag: false,
      minLength: 0.1,
    });
  };
  regions.on('region-update', (region) => showRegion(region, media.duration));
  waveform.surfer.on('ready', addRegion);
  try {
    const peaks = await peaksOf(file, media.duration);
    if (drawn === drawing) {
      waveform.setPeaks(peaks);
    }
  } catch {
    if (drawn === drawing) {
      const why =
        file.size > MOST_BYTES || media.duration > MOST_SECONDS
          ? `What is over ${size(MOST_BYTES)} or ${MOST_SECONDS / 60} minutes is not drawn`
          : 'The sound cannot be drawn here';
      byId('trim-note').textContent = `${time(media.duration)} in all. ${why}; drag the edges to trim.`;
    }
  }
}

/** What is dragged is what the fields say. */
function showRegion({ start: from, end: to }, duration) {
  start.value = from <= 0.05 ? '' : time(from);
  end.value = to >= duration - 0.05 ? '' : time(to);
  fault.textContent = '';
}

function giveUp() {
  byId('trim-wave').hidden = true;
}

/** What is typed is what is drawn. */
for (const field of [start, end]) {
  field.addEventListener('change', () => {
    if (chosenPart() !== null && drawn?.region) {
      drawn.region.setOptions({
        start: parseTime(start.value) ?? 0,
        end: Math.min(parseTime(end.value) ?? drawn.duration, drawn.duration),
      });
    }
  });
}

byId('trim-play').addEventListener('click', () => {
  if (drawn === null) {
    return;
  }
  const { media } = drawn;
  if (!media.paused) {
    media.pause();
    return;
  }
  media.currentTime = parseTime(start.value) || 0;
  media.play().catch(() => showPlaying(false));
  showPlaying(true);
  const step = () => {
    const last = parseTime(end.value) ?? Number.POSITIVE_INFINITY;
    if (media.currentTime >= last) {
      media.pause();
    }
    if (media.paused) {
      showPlaying(false);
    } else {
      requestAnimationFrame(step);
    }
  };
  media.addEventListener('playing', step, { once: true });
});

function showPlaying(playing) {
  const button = byId('trim-play');
  button.setAttribute('aria-pressed', String(playing));
  button.replaceChildren(icon(playing ? 'pause' : 'play'), playing ? 'Stop' : 'Listen');
}
