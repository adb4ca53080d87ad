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
  byId('formats').addEventListener('change', showQualities);
  normalize.addEventListener('change', () => {
    loudness.disabled = !normalize.checked;
  });
  showChoices({ format: 'mp3' }, {});
}

/** @param output and @param options as the API has them */
export function showChoices(output, options) {
  for (const input of byId('formats').querySelectorAll('input')) {
    input.checked = input.value === output.format;
  }
  showQualities();
  byId('quality').value = output.quality ?? '';
  normalize.checked = output.normalize === true || output.loudness !== undefined;
  loudness.value = String(output.loudness ?? -16);
  loudness.disabled = !normalize.checked;
  byId('track').value = output.track === undefined ? '' : String(output.track);
  byId('filename').value = options.filename ?? '';
  byId('webhook').value = options.webhook ?? '';
}

/** @returns {{ output: object, options: object }} without what was left to the service */
export function chosenOutput() {
  const text = (id) => byId(id).value.trim() || undefined;
  const track = text('track');
  const wanted = {
    output: {
      format: chosenFormat(),
      quality: text('quality'),
      ...(normalize.checked ? { normalize: true, loudness: Number(loudness.value) } : {}),
      track: track !== undefined && /^\d+$/.test(track) ? Number(track) : track,
    },
    options: { filename: text('filename'), webhook: text('webhook') },
  };
  return JSON.parse(JSON.stringify(wanted));
}

function place(format) {
  const found = Object.keys(shown).indexOf(format);
  return found === -1 ? Number.POSITIVE_INFINITY : found;
}

function formatChoice(format) {
  const [name, about] = shown[format] ?? [format.toUpperCase(), ''];
  return element(
    'label',
    { class: 'format' },
    element('input', { type: 'radio', name: 'format', value: format, class: 'visually-hidden' }),
    element('strong', { textContent: name }),
    element('span', { class: 'soft', textContent: about }),
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
