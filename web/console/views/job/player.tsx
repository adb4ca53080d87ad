/** The result as a waveform that can be played. The position is a real slider over it, so that it works by keyboard and is read aloud. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { AnyOutputFile, OutputFile } from 'soundpost-contract/job';
import { spoken } from '../../../shared/time.ts';
import { reachable } from '../../session.ts';
import { Fault, Icon } from '../../ui.tsx';
import {
  type Drawing,
  drawWaveform,
  MOST_BYTES,
  MOST_SECONDS,
  type Peaks,
  peaksOf,
  peaksOfWaveform,
} from '../../waveform.ts';
import { time } from '../../words.ts';
import type { Sound } from './sound.ts';

interface PlayerProps {
  readonly sound: Sound;
  readonly file: OutputFile;
  /** Of the same sound, where the job made one. */
  readonly waveformFile?: AnyOutputFile | undefined;
}

export function Player({ sound, file, waveformFile }: PlayerProps) {
  const { duration } = sound;
  const [at, setAt] = useState(0);
  const [isPlaying, setPlaying] = useState(false);
  const [fault, setFault] = useState('');
  useEffect(() => sound.listen({ onPosition: setAt, onPlaying: setPlaying, onFault: setFault }), [sound]);
  const { drawing, note } = useWaveform(sound, file, waveformFile);
  return (
    <>
      <div id="player" class="player">
        <button
          id="player-play"
          type="button"
          class="play"
          aria-label={isPlaying ? 'Pause' : 'Play'}
          onClick={() => (isPlaying ? sound.pause() : sound.play())}
        >
          <Icon name={isPlaying ? 'pause' : 'play'} />
        </button>
        <div class="wave">
          <div id="player-drawing" class="wave-drawing" aria-hidden="true" ref={drawing} />
          <input
            id="player-position"
            type="range"
            min={0}
            max={duration}
            step={0.1}
            value={at}
            aria-label="Position"
            aria-valuetext={`${spoken(at)} of ${spoken(duration)}`}
            onInput={({ currentTarget }) => sound.seek(Number(currentTarget.value))}
          />
        </div>
        <span id="player-time" class="player-time">
          {time(Math.floor(at))} / {time(Math.round(duration))}
        </span>
      </div>
      <p id="player-note" class="hint" role="status">
        {note}
      </p>
      <Fault text={fault} id="player-error" />
    </>
  );
}

/** Draws into `drawing`; where that cannot be done, a line stays there and `note` says why. */
function useWaveform(sound: Sound, file: OutputFile, waveformFile: AnyOutputFile | undefined) {
  const drawing = useRef<HTMLDivElement>(null);
  const [note, setNote] = useState('');
  const waveformUrl = waveformFile?.url;
  useEffect(() => {
    const ending = new AbortController();
    let drawn: Drawing | undefined;
    async function draw(container: HTMLElement): Promise<void> {
      drawn = await drawWaveform(container, sound.media, sound.duration);
      if (ending.signal.aborted) return drawn.end();
      const peaks = await peaksFor(file, waveformUrl, ending.signal);
      if (!ending.signal.aborted) drawn.setPeaks(peaks);
    }
    setNote('');
    if (drawing.current !== null) {
      draw(drawing.current).catch((error: unknown) => {
        if (!ending.signal.aborted) setNote(whyNotDrawn(error, waveformUrl !== undefined));
      });
    }
    return () => {
      ending.abort();
      drawn?.end();
    };
  }, [sound, waveformUrl]);
  return { drawing, note };
}

/** Why there is nothing to draw, as a sentence. */
class NotDrawn extends Error {}

async function peaksFor(
  { url = '', size, duration }: OutputFile,
  waveformUrl: string | undefined,
  signal: AbortSignal,
): Promise<Peaks> {
  if (waveformUrl !== undefined) {
    return peaksOfWaveform(await (await fetched(waveformUrl, signal)).json());
  }
  if (size > MOST_BYTES || duration > MOST_SECONDS) {
    throw new NotDrawn(
      `No waveform: the audio is over ${MOST_BYTES / 1e6} MB or ${MOST_SECONDS / 60} minutes. Jobs with waveform data have no such limit.`,
    );
  }
  return peaksOf(await (await fetched(url, signal)).blob(), duration);
}

async function fetched(url: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(reachable(url), { signal }).catch(() => undefined);
  if (response?.ok !== true) {
    throw new NotDrawn('No waveform: the file could not be loaded. Reload the page to try again.');
  }
  return response;
}

function whyNotDrawn(error: unknown, isOfWaveform: boolean): string {
  if (error instanceof NotDrawn) return error.message;
  return isOfWaveform
    ? 'No waveform: the job’s waveform data could not be read.'
    : 'No waveform: this browser cannot decode the file. You can still download it.';
}
