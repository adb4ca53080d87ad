// What is said, beside the player: the line of the moment is marked, and a click on a line plays from there.
import { reachable } from './connection.js';
import { byId, setText } from './page.js';
import { onPosition, playFrom } from './player.js';
import { element } from './shared/elements.js';
import { time } from './words.js';

const box = byId('transcript');
const list = byId('transcript-lines');

/** Address of the file that is shown, or null. */
let shown = null;
/** `{ start, end, item }` of each line, on the player's clock. */
let lines = [];
let current = null;

/** @param job completed @param file the one in the player */
export function showTranscript({ transcripts = [], outputFiles }, file) {
  const state = transcripts.find(({ status }) => status !== 'failed') ?? transcripts[0];
  box.hidden = state === undefined;
  if (state === undefined) {
    return;
  }
  const text = outputFiles.find(({ name, subtitles }) => name === state.name && subtitles !== 'txt');
  setText(byId('transcript-status'), statusOf(state, text));
  if (text?.url !== undefined && text.url !== shown) {
    shown = text.url;
    // Times are the source's, and the player's sound may begin later.
    void load(text, file.timeline?.startOffset ?? 0);
  }
}

export function closeTranscript() {
  shown = null;
  lines = [];
  current = null;
  box.hidden = true;
  list.replaceChildren();
}

function statusOf({ status, error }, text) {
  if (status === 'pending') {
    return 'It follows when it is there.';
  }
  if (status === 'failed') {
    return `It could not be made: ${error?.details ?? error?.message ?? 'nobody knows why'}.`;
  }
  return text === undefined ? 'It is among the files below.' : '';
}

async function load({ url, subtitles }, offset) {
  try {
    const content = await (await fetch(reachable(url))).text();
    const segments = subtitles === 'json' ? JSON.parse(content).segments : segmentsOf(content);
    if (shown !== url) {
      return;
    }
    lines = segments.map(({ start, end, text }) => ({
      start: Math.max(0, start - offset),
      end: end - offset,
      item: lineOf(Math.max(0, start - offset), text),
    }));
    list.replaceChildren(...lines.map(({ item }) => item));
    if (lines.length === 0) {
      setText(byId('transcript-status'), 'Nobody speaks.');
    }
  } catch {
    setText(byId('transcript-status'), 'It cannot be shown here; it is among the files below.');
  }
}

function lineOf(start, text) {
  const button = element(
    'button',
    { type: 'button', class: 'transcript-line' },
    element('span', { class: 'transcript-time', textContent: time(Math.floor(start)) }),
    element('span', { textContent: text }),
  );
  button.addEventListener('click', () => playFrom(start));
  return element('li', {}, button);
}

const TIMING = /^(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3}) --> (?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})/;

/** Of WebVTT and SubRip as the service writes them. */
function segmentsOf(content) {
  return content.split(/\n\n+/).flatMap((block) => {
    const rows = block.trim().split('\n');
    const at = rows.findIndex((row) => TIMING.test(row));
    if (at === -1) {
      return [];
    }
    const [h1, m1, s1, ms1, h2, m2, s2, ms2] = TIMING.exec(rows[at])
      .slice(1)
      .map((part) => Number(part ?? 0));
    const text = rows.slice(at + 1).join(' ');
    return [
      {
        start: h1 * 3600 + m1 * 60 + s1 + ms1 / 1000,
        end: h2 * 3600 + m2 * 60 + s2 + ms2 / 1000,
        text: text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
      },
    ];
  });
}

onPosition((at) => {
  const now = lines.findLast(({ start }) => start <= at + 0.05);
  const line = now !== undefined && at < now.end ? now : null;
  if (line === current) {
    return;
  }
  current?.item.removeAttribute('aria-current');
  line?.item.setAttribute('aria-current', 'true');
  if (line !== null) {
    // Within the list alone: the page stays where it is.
    const { offsetTop, offsetHeight } = line.item;
    list.scrollTop = offsetTop - list.offsetTop - (list.clientHeight - offsetHeight) / 2;
  }
  current = line;
});
