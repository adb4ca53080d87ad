/** The fields of what is to be made: format, quality, loudness, and what few need. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { formats, qualities } from 'soundpost-contract/formats';
import { hasTranscriber } from '../../session.ts';
import { Field, focusNext } from '../../ui.tsx';
import { type Choices, choices, choose, type FormatName } from './choices.ts';
import { useStore } from './store.ts';

/** In the order in which people look for them. */
const words: Readonly<Record<FormatName, readonly [name: string, what: string]>> = {
  mp3: ['MP3', 'plays everywhere'],
  m4a: ['M4A', 'small, for Apple'],
  m4b: ['M4B', 'audiobook'],
  opus: ['Opus', 'smallest'],
  ogg: ['Ogg', 'Vorbis'],
  flac: ['FLAC', 'lossless'],
  wav: ['WAV', 'uncompressed'],
  aac: ['AAC', 'raw stream'],
  voice: ['Voice', 'for chats'],
};
const order = (Object.keys(words) as FormatName[]).filter((name) => Object.hasOwn(formats, name));
const qualityWords = { low: 'Low', medium: 'Medium', high: 'High', extreme: 'Extreme' } as const;

/** @param isForOne of several sources none has a file name or a destination: they would all have the same */
export function ResultChoices({ isForOne }: { readonly isForOne: boolean }) {
  const chosen = useStore(choices);
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
      <Loudness chosen={chosen} />
      <details id="more" class="more">
        <summary>More options</summary>
        <div class="more-body">
          <MoreChoices chosen={chosen} isForOne={isForOne} />
        </div>
      </details>
    </>
  );
}

/** LUFS of EBU R128 and of what is common for streams and podcasts. */
const loudnesses = new Map([
  ['', 'Unchanged'],
  ['-14', '−14'],
  ['-16', '−16'],
  ['-19', '−19'],
  ['-23', '−23'],
]);
const channels = new Map([
  ['', 'All'],
  ['left', 'Left'],
  ['right', 'Right'],
]);

function Loudness({ chosen: { normalize, loudness } }: { readonly chosen: Choices }) {
  return (
    <Pills
      legend="Loudness, LUFS"
      name="loudness"
      options={loudnesses}
      value={normalize ? loudness : ''}
      onValue={(value) => choose({ normalize: value !== '', ...(value === '' ? {} : { loudness: value }) })}
      onOther={() => choose({ normalize: true })}
      other={(attributes) => (
        <input
          {...attributes}
          type="number"
          min="-36"
          max="-6"
          step="0.5"
          value={loudness}
          onInput={({ currentTarget }) => choose({ normalize: true, loudness: currentTarget.value })}
        />
      )}
    />
  );
}

interface PillsProps {
  readonly legend: string;
  readonly name: string;
  /** Words by value; a value that is none of them is shown as another one. */
  readonly options: ReadonlyMap<string, string>;
  readonly value: string;
  readonly onValue: (value: string) => void;
  /** Another one is about to be typed. */
  readonly onOther?: () => void;
  /** The field for any other value. */
  readonly other: (attributes: { readonly id: string; readonly 'aria-label': string }) => ComponentChildren;
}

/** One of a few by one press, or another one that is typed. */
function Pills({ legend, name, options, value, onValue, onOther, other }: PillsProps) {
  const [isOther, setOther] = useState(false);
  const shown = isOther || !options.has(value) ? undefined : value;
  const pill = (word: string, isChecked: boolean, choosePill: () => void) => (
    <label key={word} class="format pill">
      <input type="radio" name={name} class="visually-hidden" checked={isChecked} onChange={choosePill} />
      {word}
    </label>
  );
  return (
    <fieldset class="pills" id={`${name}-pills`}>
      <legend>{legend}</legend>
      {[...options].map(([one, word]) =>
        pill(word, shown === one, () => {
          setOther(false);
          onValue(one);
        }),
      )}
      {pill('Other', shown === undefined, () => {
        setOther(true);
        onOther?.();
        focusNext(name);
      })}
      {shown === undefined ? other({ id: name, 'aria-label': `${legend}, other` }) : null}
    </fieldset>
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
          <option value="">Automatic (copy if possible)</option>
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
      <Field label="Audio track" id="track" hint="A language such as en, or an index from 0.">
        {(attributes) => (
          <input {...attributes} {...bound(chosen, 'track')} autocomplete="off" placeholder="default track" />
        )}
      </Field>
      <Pills
        legend="Channel"
        name="channel"
        options={channels}
        value={chosen.channel}
        onValue={(channel) => choose({ channel })}
        other={(attributes) => (
          <input {...attributes} {...bound(chosen, 'channel')} inputMode="numeric" placeholder="from 0" />
        )}
      />
      <Field label="Also make" id="also">
        {(attributes) => (
          <select
            {...attributes}
            value={chosen.also}
            onChange={({ currentTarget }) => choose({ also: currentTarget.value })}
          >
            <option value="">Nothing</option>
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
        <p class="hint">Each result is named after its source. A destination needs a single source.</p>
      )}
      <Field label="Webhook" id="webhook" hint="We POST here when the job finishes.">
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
            placeholder="same as source"
          />
        )}
      </Field>
      <Field
        label="Destination"
        id="destination"
        hint="A presigned URL for PUT. For several files, put {name} where the file name goes."
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
