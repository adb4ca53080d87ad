/** What is said, beside the player: the line of the moment is marked, and a click on a line plays from there. */
import { Fragment } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { AnyOutputFile, Job, OutputFile, TranscriptFile } from 'soundpost-contract/job';
import type { TranscriptState } from 'soundpost-contract/transcripts';
import { reachable } from '../../session.ts';
import { Button } from '../../ui.tsx';
import { outputsOf, time } from '../../words.ts';
import { CopyNote, useCopy } from './copy.tsx';
import type { Sound } from './sound.ts';

/** On the player's clock, in seconds. */
interface Line {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface TranscriptProps {
  readonly job: Job;
  /** The one in the player. */
  readonly file: OutputFile;
  readonly sound: Sound;
}

export function Transcript({ job, file, sound }: TranscriptProps) {
  const { transcripts = [], outputFiles } = job;
  const state = transcripts.find(({ status }) => status !== 'failed') ?? transcripts[0];
  const text = outputFiles.filter(isTimed).find(({ name }) => name === state?.name);
  // Times are the source's, and the player's sound may begin later.
  const { lines, fault } = useLines(text, file.timeline.startOffset);
  const isWaiting = state?.status === 'pending' && willBeTimed(job, state.name);
  const hasWaited = useRef(isWaiting);
  if (isWaiting) hasWaited.current = true;
  if (state === undefined) return null;
  return (
    <div id="transcript" class={`transcript${hasWaited.current ? ' waited-for' : ''}`}>
      <h3 id="transcript-title">Transcript</h3>
      <p id="transcript-status" class="soft" role="status">
        {fault || (lines?.length === 0 ? 'No speech found.' : statusOf(state, text))}
      </p>
      <Lines
        lines={lines ?? []}
        isLoading={text !== undefined && lines === undefined && fault === ''}
        sound={sound}
      />
    </div>
  );
}

const willBeTimed = (job: Job, wanted: string): boolean =>
  outputsOf(job).some(
    (output) => output.format === 'transcript' && output.name === wanted && output.subtitles !== 'txt',
  );

const isTimed = (file: AnyOutputFile): file is TranscriptFile =>
  file.format === 'transcript' && file.subtitles !== 'txt';

function statusOf({ status, error }: TranscriptState, text: TranscriptFile | undefined): string {
  if (status === 'pending') return 'Transcribing…';
  if (status === 'failed') {
    return `The transcript failed: ${error?.details ?? error?.message ?? 'no reason was given'}.`;
  }
  return text === undefined ? 'The transcript is in the files below.' : '';
}

function useLines(file: TranscriptFile | undefined, offset: number) {
  const [lines, setLines] = useState<readonly Line[]>();
  const [fault, setFault] = useState('');
  const url = file?.url;
  useEffect(() => {
    setLines(undefined);
    setFault('');
    if (url === undefined) return;
    const ending = new AbortController();
    loadLines(reachable(url), file?.subtitles === 'json', ending.signal).then(
      (found) => setLines(found.map((line) => moved(line, offset))),
      () => {
        if (!ending.signal.aborted)
          setFault('The transcript cannot be shown here. It is in the files below.');
      },
    );
    return () => ending.abort();
  }, [url, offset]);
  return { lines, fault };
}

const moved = ({ start, end, text }: Line, offset: number): Line => ({
  start: Math.max(0, start - offset),
  end: end - offset,
  text,
});

async function loadLines(address: string, isJson: boolean, signal: AbortSignal): Promise<Line[]> {
  const response = await fetch(address, { signal });
  if (!response.ok) throw new Error(`answered ${response.status}`);
  return isJson ? (await response.json()).segments : linesOf(await response.text());
}

interface LinesProps {
  readonly lines: readonly Line[];
  readonly isLoading: boolean;
  readonly sound: Sound;
}

function Lines({ lines, isLoading, sound }: LinesProps) {
  const list = useRef<HTMLOListElement>(null);
  const [current, setCurrent] = useState(-1);
  const [wanted, setWanted] = useState('');
  const [hit, setHit] = useState(0);
  const hits = useMemo(() => hitsIn(lines, wanted), [lines, wanted]);
  const found = hits[hit];
  useEffect(() => scrollWithin(list.current, found?.line ?? -1), [found]);
  useEffect(() => sound.listen({ onPosition: (at) => setCurrent(lineAt(lines, at)) }), [sound, lines]);
  useEffect(() => scrollWithin(list.current, current), [current]);
  return (
    <>
      {lines.length === 0 ? null : (
        <Finder
          lines={lines}
          wanted={wanted}
          onWanted={(text) => {
            setWanted(text);
            setHit(0);
          }}
          hit={hit}
          count={hits.length}
          onNext={() => setHit(hits.length === 0 ? 0 : (hit + 1) % hits.length)}
        />
      )}
      <ol
        id="transcript-lines"
        class="transcript-lines"
        aria-labelledby="transcript-title"
        aria-busy={isLoading}
        ref={list}
      >
        {lines.map(({ start, text }, index) => (
          <li key={index} aria-current={index === current ? 'true' : undefined}>
            <button
              type="button"
              class="transcript-line"
              onClick={() => {
                sound.seek(start);
                sound.play();
              }}
            >
              <span class="transcript-time">{time(Math.floor(start))}</span>
              <span>
                <Marked text={text} wanted={wanted} at={found?.line === index ? found.at : undefined} />
              </span>
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

interface FinderProps {
  readonly lines: readonly Line[];
  readonly wanted: string;
  readonly onWanted: (text: string) => void;
  /** Which of them is shown, from 0. */
  readonly hit: number;
  readonly count: number;
  readonly onNext: () => void;
}

function Finder({ lines, wanted, onWanted, hit, count, onNext }: FinderProps) {
  const { copied, copy } = useCopy();
  return (
    <>
      <search class="transcript-bar" aria-label="Transcript">
        <input
          id="transcript-search"
          type="search"
          aria-label="Find in the transcript"
          placeholder="Find a word"
          autocomplete="off"
          value={wanted}
          onInput={({ currentTarget }) => onWanted(currentTarget.value)}
          onKeyDown={({ key }) => {
            if (key === 'Enter') onNext();
          }}
        />
        <span id="transcript-hits" class="soft" role="status">
          {wanted === '' ? '' : count === 0 ? 'Not found' : `${hit + 1} of ${count}`}
        </span>
        <Button id="transcript-next" class="small" disabled={count < 2} onClick={onNext}>
          Next
        </Button>
        <Button
          id="transcript-copy"
          class="small"
          icon="copy"
          onClick={() =>
            void copy(lines.map(({ text }) => text.trim()).join('\n'), 'Text copied, one line each.')
          }
        >
          Copy text
        </Button>
      </search>
      <CopyNote copied={copied} id="transcript-copied" />
    </>
  );
}

interface Hit {
  readonly line: number;
  /** Where it begins in the text of the line. */
  readonly at: number;
}

function hitsIn(lines: readonly Line[], wanted: string): Hit[] {
  if (wanted === '') return [];
  return lines.flatMap(({ text }, line) => placesIn(text, wanted).map((at) => ({ line, at })));
}

function placesIn(text: string, wanted: string): number[] {
  const places: number[] = [];
  const [all, one] = [text.toLowerCase(), wanted.toLowerCase()];
  for (let at = all.indexOf(one); at >= 0; at = all.indexOf(one, at + one.length)) places.push(at);
  return places;
}

/** @param at the place that is shown, where it is one of this text */
function Marked({
  text,
  wanted,
  at,
}: {
  readonly text: string;
  readonly wanted: string;
  readonly at: number | undefined;
}) {
  if (wanted === '') return <>{text}</>;
  const places = placesIn(text, wanted);
  return (
    <>
      {places.map((place, index) => (
        <Fragment key={place}>
          {text.slice(index === 0 ? 0 : (places[index - 1] ?? 0) + wanted.length, place)}
          <mark class={place === at ? 'shown' : ''}>{text.slice(place, place + wanted.length)}</mark>
        </Fragment>
      ))}
      {text.slice((places.at(-1) ?? -wanted.length) + wanted.length)}
    </>
  );
}

/** The page stays where it is. */
function scrollWithin(list: HTMLElement | null, index: number): void {
  const item = list?.children[index];
  if (list === null || !(item instanceof HTMLElement)) return;
  const { offsetTop, offsetHeight } = item;
  list.scrollTop = offsetTop - list.offsetTop - (list.clientHeight - offsetHeight) / 2;
}

/** −1 where nobody speaks. */
function lineAt(lines: readonly Line[], at: number): number {
  const index = lines.findLastIndex(({ start }) => start <= at + 0.05);
  const line = lines[index];
  return line !== undefined && at < line.end ? index : -1;
}

const TIMING = /^(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3}) --> (?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})/;

/** Of WebVTT and SubRip as the service writes them. */
function linesOf(content: string): Line[] {
  return content.split(/\n\n+/).flatMap((block) => {
    const rows = block.trim().split('\n');
    const at = rows.findIndex((row) => TIMING.test(row));
    const parts = TIMING.exec(rows[at] ?? '')?.slice(1);
    if (parts === undefined) return [];
    const text = rows.slice(at + 1).join(' ');
    return [
      {
        start: secondsOf(parts.slice(0, 4)),
        end: secondsOf(parts.slice(4)),
        text: text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
      },
    ];
  });
}

/** @param parts hours, minutes, seconds and milliseconds; hours may be missing */
function secondsOf(parts: readonly (string | undefined)[]): number {
  const [hours = 0, minutes = 0, seconds = 0, millis = 0] = parts.map((part) => Number(part ?? 0));
  return hours * 3600 + minutes * 60 + seconds + millis / 1000;
}
