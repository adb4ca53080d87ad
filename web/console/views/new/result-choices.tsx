/** The fields of what is to be made: format, quality, loudness, and what few need. */
import { formats, qualities } from 'soundpost-contract/formats';
import { hasTranscriber } from '../../session.ts';
import { Field } from '../../ui.tsx';
import { type Choices, choices, choose, type FormatName } from './choices.ts';
import { useStore } from './store.ts';

/** In the order in which people look for them. */
const words: Readonly<Record<FormatName, readonly [name: string, what: string]>> = {
  mp3: ['MP3', 'plays everywhere'],
  m4a: ['M4A', 'small, for Apple'],
  m4b: ['M4B', 'an audiobook'],
  opus: ['Opus', 'smallest'],
  ogg: ['Ogg', 'Vorbis'],
  flac: ['FLAC', 'lossless'],
  wav: ['WAV', 'uncompressed'],
  aac: ['AAC', 'a bare stream'],
  voice: ['Voice', 'for a chat'],
};
const order = (Object.keys(words) as FormatName[]).filter((name) => Object.hasOwn(formats, name));
const qualityWords = { low: 'Low', medium: 'Medium', high: 'High', extreme: 'Extreme' } as const;

/** @param isForOne of several sources none has a file name or a destination: they would all have the same */
export function ResultChoices({ isForOne }: { readonly isForOne: boolean }) {
  const chosen = useStore(choices);
  const { normalize } = chosen;
  return (
    <>
      <fieldset>
        <legend>Format</legend>
        <div id="formats" class="formats">
          {order.map((format) => (
            <label key={format} class="format">
              <input
                type="radio"
                name="format"
                value={format}
                class="visually-hidden"
                checked={chosen.format === format}
                onChange={() => choose({ format })}
              />
              <strong>{words[format][0]}</strong>
              <span class="soft">{words[format][1]}</span>
            </label>
          ))}
        </div>
      </fieldset>
      <Quality chosen={chosen} />
      <div class="switch-row">
        <label class="switch">
          <input
            id="normalize"
            type="checkbox"
            checked={normalize}
            onChange={({ currentTarget }) => choose({ normalize: currentTarget.checked })}
          />
          <span class="switch-track" aria-hidden="true" />
          <span>Even out the loudness</span>
        </label>
        <div class="field inline-field">
          <label for="loudness">Target</label>
          <input
            id="loudness"
            type="number"
            min="-36"
            max="-6"
            step="0.5"
            disabled={!normalize}
            value={chosen.loudness}
            onInput={({ currentTarget }) => choose({ loudness: currentTarget.value })}
          />
          <span class="soft">LUFS</span>
        </div>
      </div>
      <details id="more" class="more">
        <summary>More choices</summary>
        <div class="more-body">
          <MoreChoices chosen={chosen} isForOne={isForOne} />
        </div>
      </details>
    </>
  );
}

function Quality({ chosen: { format, quality: value } }: { readonly chosen: Choices }) {
  const { quality } = formats[format];
  return (
    <Field label="Quality" id="quality">
      {(attributes) => (
        <select
          {...attributes}
          value={value}
          onChange={({ currentTarget }) => choose({ quality: currentTarget.value })}
        >
          <option value="">Best without needless loss</option>
          {qualities.map((name) => (
            <option key={name} value={name}>
              {quality === 'lossless'
                ? qualityWords[name]
                : `${qualityWords[name]} · ${quality[name]} kbit/s`}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function MoreChoices({ chosen, isForOne }: { readonly chosen: Choices; readonly isForOne: boolean }) {
  return (
    <>
      <Field label="Audio track" id="track" hint="A language such as en, or a number from 0.">
        {(attributes) => (
          <input {...attributes} {...bound(chosen, 'track')} autocomplete="off" placeholder="the main one" />
        )}
      </Field>
      <Field label="Channel" id="channel" hint="One channel alone, as mono: left, right, or a number from 0.">
        {(attributes) => (
          <input {...attributes} {...bound(chosen, 'channel')} autocomplete="off" placeholder="all" />
        )}
      </Field>
      <Field label="Also as" id="also">
        {(attributes) => (
          <select
            {...attributes}
            value={chosen.also}
            onChange={({ currentTarget }) => choose({ also: currentTarget.value })}
          >
            <option value="">Nothing else</option>
            {order.map((format) => (
              <option key={format} value={format}>
                {words[format][0]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="Transcript"
        id="subtitles"
        {...(hasTranscriber() ? {} : { hint: 'This service has no transcriber (TRANSCRIBER_URL).' })}
      >
        {(attributes) => (
          <select
            {...attributes}
            value={chosen.subtitles}
            disabled={!hasTranscriber()}
            onChange={({ currentTarget }) => choose({ subtitles: currentTarget.value })}
          >
            <option value="">None</option>
            <option value="vtt">Subtitles (WebVTT)</option>
            <option value="srt">Subtitles (SubRip)</option>
            <option value="txt">Plain text</option>
            <option value="json">JSON with times</option>
          </select>
        )}
      </Field>
      <label class="switch">
        <input
          id="waveform"
          type="checkbox"
          checked={chosen.waveform}
          onChange={({ currentTarget }) => choose({ waveform: currentTarget.checked })}
        />
        <span class="switch-track" aria-hidden="true" />
        <span>Waveform data</span>
      </label>
      {isForOne ? (
        <ForOne chosen={chosen} />
      ) : (
        <p class="hint">
          Each result is named after its source. One source alone can also have a destination.
        </p>
      )}
      <Field label="Webhook" id="webhook" hint="Is told when the job has ended.">
        {(attributes) => (
          <input
            {...attributes}
            {...bound(chosen, 'webhook')}
            {...address}
            placeholder="https://example.com/hooks"
          />
        )}
      </Field>
    </>
  );
}

function ForOne({ chosen }: { readonly chosen: Choices }) {
  return (
    <>
      <Field label="File name" id="filename">
        {(attributes) => (
          <input
            {...attributes}
            {...bound(chosen, 'filename')}
            maxLength={200}
            autocomplete="off"
            placeholder="as the source"
          />
        )}
      </Field>
      <Field
        label="Destination"
        id="destination"
        hint="A presigned address that takes a PUT. For several files, {name} stands where their names go."
      >
        {(attributes) => (
          <input
            {...attributes}
            {...bound(chosen, 'destination')}
            {...address}
            placeholder="https://bucket.example.com/{name}"
          />
        )}
      </Field>
    </>
  );
}

const address = {
  type: 'url',
  inputMode: 'url',
  maxLength: 2048,
  autocomplete: 'off',
  spellcheck: false,
} as const;

const bound = (chosen: Choices, name: 'track' | 'channel' | 'filename' | 'destination' | 'webhook') => ({
  value: chosen[name],
  onInput: ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) =>
    choose({ [name]: currentTarget.value }),
});
