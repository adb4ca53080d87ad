/** Which part of the only source is wanted: two fields, and for a file that the browser can play a drawing. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Fault, Icon } from '../../ui.tsx';
import { parseTime, time } from '../../words.ts';
import { type Choices, choices, choose, type Part } from './choices.ts';
import { createStore, useStore } from './store.ts';
import { drawTrim, type TrimDrawing } from './trim-drawing.ts';

const UNPLAYABLE = 'This browser cannot play the file. Start and end still work.';

/** What is wrong with the times; how long the file is, seconds, where that is known. */
const check = createStore<{ readonly fault: string; readonly seconds: number | undefined }>({
  fault: '',
  seconds: undefined,
});

/** @returns undefined where a field holds no time, which is then said there */
export function chosenPart(): Part | undefined {
  const { start, end } = choices.get();
  const { seconds } = check.get();
  const fault = faultOf(parseTime(start), parseTime(end), seconds);
  check.set((state) => ({ ...state, fault }));
  if (fault === '') return partOf(choices.get());
  document
    .getElementById(Number.isNaN(parseTime(start)) || !isTime(end) ? wrongField(start) : 'start')
    ?.focus();
  return undefined;
}

const isTime = (text: string): boolean => !Number.isNaN(parseTime(text));
const wrongField = (start: string): string => (isTime(start) ? 'end' : 'start');

function partOf({ start, end }: Choices): Part {
  const from = parseTime(start) || undefined;
  const to = parseTime(end);
  return {
    ...(from === undefined ? {} : { start: from }),
    ...(to === undefined || Number.isNaN(to) ? {} : { end: to }),
  };
}

function faultOf(from = 0, to: number | undefined, seconds: number | undefined): string {
  if (Number.isNaN(from) || Number.isNaN(to)) {
    return 'Enter a time as seconds or minutes: 75 or 1:15.';
  }
  if (to !== undefined && to <= from) return 'The end must come after the start.';
  return seconds !== undefined && from >= seconds
    ? `The file is only ${time(seconds)} long: choose an earlier start.`
    : '';
}

const tellFault = (fault: string): void => check.set((state) => ({ ...state, fault }));
const tellSeconds = (seconds: number | undefined): void => check.set(() => ({ fault: '', seconds }));

/** @param file left out: the source is no file of this machine */
export function Trim({ file }: { readonly file: File | undefined }) {
  const { start, end } = useStore(choices);
  const { fault } = useStore(check);
  const drawing = useRef<TrimDrawing | undefined>(undefined);

  function field(name: 'start' | 'end', label: string, placeholder: string) {
    const value = name === 'start' ? start : end;
    return (
      <div class="field">
        <label for={name}>{label}</label>
        <input
          id={name}
          inputMode="decimal"
          placeholder={placeholder}
          autocomplete="off"
          aria-describedby="trim-hint trim-error"
          aria-invalid={fault !== '' || !isTime(value)}
          value={value}
          onInput={({ currentTarget }) => choose({ [name]: currentTarget.value })}
          onChange={() => {
            if (chosenPart() !== undefined) drawing.current?.showPart();
          }}
        />
      </div>
    );
  }

  return (
    <fieldset class="trim">
      <legend>Trim</legend>
      {file === undefined ? null : <Wave key={fileKey(file)} file={file} drawing={drawing} />}
      <div class="pair">
        {field('start', 'Start', '0:00')}
        {field('end', 'End', 'to the end')}
      </div>
      <p id="trim-hint" class="hint">
        Seconds or minutes: 75 or 1:15.
      </p>
      <Fault text={fault} id="trim-error" />
    </fieldset>
  );
}

const keys = new WeakMap<File, number>();
let lastKey = 0;

function fileKey(file: File): number {
  const known = keys.get(file);
  if (known !== undefined) return known;
  lastKey += 1;
  keys.set(file, lastKey);
  return lastKey;
}

interface WaveProps {
  readonly file: File;
  readonly drawing: { current: TrimDrawing | undefined };
}

function Wave({ file, drawing }: WaveProps) {
  const container = useRef<HTMLDivElement>(null);
  const [note, setNote] = useState('');
  const [isPlaying, setPlaying] = useState(false);
  const [isPlayable, setPlayable] = useState(true);
  useEffect(() => {
    if (container.current === null) return undefined;
    const drawn = drawTrim(container.current, file, {
      onKnown: tellSeconds,
      onNote: setNote,
      onUnplayable() {
        setPlayable(false);
        setNote(UNPLAYABLE);
      },
      onPart(from, to) {
        const { seconds = Number.POSITIVE_INFINITY } = check.get();
        choose({
          start: from <= 0.05 ? '' : time(from),
          end: to >= seconds - 0.05 ? '' : time(to),
        });
        tellFault('');
      },
      onPlaying: setPlaying,
      part: () => partOf(choices.get()),
    });
    drawing.current = drawn;
    return () => {
      drawing.current = undefined;
      drawn.end();
      tellSeconds(undefined);
    };
  }, []);
  return (
    <div id="trim-wave" class="trim-wave">
      <div hidden={!isPlayable}>
        <div id="trim-drawing" class="wave-drawing" aria-hidden="true" ref={container} />
      </div>
      <div class="trim-bar">
        {isPlayable ? (
          <button
            id="trim-play"
            type="button"
            class="small"
            aria-pressed={isPlaying}
            onClick={() => drawing.current?.togglePlaying()}
          >
            <Icon name={isPlaying ? 'pause' : 'play'} />
            <span>{isPlaying ? 'Stop' : 'Listen'}</span>
          </button>
        ) : null}
        <span id="trim-note" class="soft" role="status">
          {note}
        </span>
      </div>
    </div>
  );
}
