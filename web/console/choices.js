// What is to be made of the source: format, quality, loudness, and what few need.
import { formats, qualities } from './contract.js';
import { byId } from './page.js';
import { element } from './shared/elements.js';

/** In the order in which people look for them. */
const shown = {
  mp3: ['MP3', 'plays everywhere'],
  m4a: ['M4A', 'small, for Apple'],
  opus: ['Opus', 'smallest'],
  ogg: ['Ogg', 'Vorbis'],
  flac: ['FLAC', 'lossless'],
  wav: ['WAV', 'uncompressed'],
  aac: ['AAC', 'a bare stream'],
  voice: ['Voice', 'for a chat'],
};
const qualityWords = { low: 'Low', medium: 'Medium', high: 'High', extreme: 'Extreme' };
const normalize = byId('normalize');
const loudness = byId('loudness');

export function prepareChoices() {
  byId('formats').replaceChildren(
    ...Object.keys(formats)
      .toSorted((one, other) => place(one) - place(other))
      .map((format) => formatChoice(format)),
  );
  byId('also').replaceChildren(
    element('option', { value: '', textContent: 'Nothing else' }),
    ...Object.keys(formats)
      .toSorted((one, other) => place(one) - place(other))
      .map((format) => element('option', { value: format, textContent: nameOf(format) })),
  );
  byId('formats').addEventListener('change', showQualities);
  normalize.addEventListener('change', () => {
    loudness.disabled = !normalize.checked;
  });
  showChoices([{ format: 'mp3' }], {});
}

/** @param outputs and @param options as the API has them; of further outputs of sound the first is shown */
export function showChoices([output, ...others], options) {
  for (const input of byId('formats').querySelectorAll('input')) {
    input.checked = input.value === output.format;
  }
  showQualities();
  byId('quality').value = output.quality ?? '';
  normalize.checked = output.normalize === true || output.loudness !== undefined;
  loudness.value = String(output.loudness ?? -16);
  loudness.disabled = !normalize.checked;
  byId('track').value = output.track === undefined ? '' : String(output.track);
  const transcript = others.find(({ format }) => format === 'transcript');
  byId('also').value = others.find(({ format }) => format in formats)?.format ?? '';
  byId('subtitles').value = transcript === undefined ? '' : (transcript.subtitles ?? 'vtt');
  byId('waveform').checked = others.some(({ format }) => format === 'waveform');
  byId('filename').value = options.filename ?? '';
  byId('webhook').value = options.webhook ?? '';
  byId('destination').value = '';
}

/**
 * @param part `start` and `end`, where they were chosen
 * @returns what is asked for of a source, as the API has it, without what was left to the service
 */
export function chosenRequest(part) {
  const track = text('track');
  const cut = { track: track !== undefined && /^\d+$/.test(track) ? Number(track) : track, ...part };
  const level = normalize.checked ? { normalize: true, loudness: Number(loudness.value) } : {};
  const output = { format: chosenFormat(), quality: text('quality'), ...level, ...cut };
  const [also, subtitles, destination] = ['also', 'subtitles', 'destination'].map(text);
  const others = [
    also && { name: `also-${also}`, format: also, ...level, ...cut },
    byId('waveform').checked && { name: 'waveform', format: 'waveform', ...cut },
    subtitles && { name: 'transcript', format: 'transcript', subtitles, ...cut },
  ].filter(Boolean);
  const wanted = {
    ...(others.length === 0 ? { output } : { outputs: [{ name: 'audio', ...output }, ...others] }),
    ...(destination && { destination: { url: destination } }),
    options: { filename: text('filename'), webhook: text('webhook') },
  };
  return JSON.parse(JSON.stringify(wanted));
}

const text = (id) => byId(id).value.trim() || undefined;

function place(format) {
  const found = Object.keys(shown).indexOf(format);
  return found === -1 ? Number.POSITIVE_INFINITY : found;
}

const nameOf = (format) => shown[format]?.[0] ?? format.toUpperCase();

function formatChoice(format) {
  return element(
    'label',
    { class: 'format' },
    element('input', { type: 'radio', name: 'format', value: format, class: 'visually-hidden' }),
    element('strong', { textContent: nameOf(format) }),
    element('span', { class: 'soft', textContent: shown[format]?.[1] ?? '' }),
  );
}

function chosenFormat() {
  return byId('formats').querySelector('input:checked')?.value ?? 'mp3';
}

function showQualities() {
  const { quality } = formats[chosenFormat()];
  const select = byId('quality');
  const kept = select.value;
  select.replaceChildren(
    element('option', { value: '', textContent: 'Best without needless loss' }),
    ...qualities.map((name) =>
      element('option', {
        value: name,
        textContent:
          quality === 'lossless' ? qualityWords[name] : `${qualityWords[name]} · ${quality[name]} kbit/s`,
      }),
    ),
  );
  select.value = kept;
}
