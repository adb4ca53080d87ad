/** What is said, beside the player: the line of the moment is marked, and a click on a line plays from there. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { AnyOutputFile, Job, OutputFile, TranscriptFile } from 'soundpost-contract/job';
import type { TranscriptState } from 'soundpost-contract/transcripts';
import { reachable } from '../../session.ts';
import { outputsOf, time } from '../../words.ts';
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
        {fault || (lines?.length === 0 ? 'Nobody speaks.' : statusOf(state, text))}
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
  if (status === 'pending') return 'It follows when it is there.';
  if (status === 'failed') {
    return `It could not be made: ${error?.details ?? error?.message ?? 'nobody knows why'}.`;
  }
  return text === undefined ? 'It is among the files below.' : '';
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
        if (!ending.signal.aborted) setFault('It cannot be shown here; it is among the files below.');
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
  useEffect(() => sound.listen({ onPosition: (at) => setCurrent(lineAt(lines, at)) }), [sound, lines]);
  useEffect(() => {
    const item = list.current?.children[current];
    if (list.current !== null && item instanceof HTMLElement) {
      // Within the list alone: the page stays where it is.
      const { offsetTop, offsetHeight } = item;
      list.current.scrollTop =
        offsetTop - list.current.offsetTop - (list.current.clientHeight - offsetHeight) / 2;
    }
  }, [current]);
  return (
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
            <span>{text}</span>
          </button>
        </li>
      ))}
    </ol>
  );
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
