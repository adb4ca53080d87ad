/** A local file as a waveform with the part that is wanted; dragging over it chooses another part, dragging an edge moves that. */
import type RegionsPlugin from 'wavesurfer.js/dist/plugins/regions.js';
import { type Drawing, drawWaveform, MOST_BYTES, MOST_SECONDS, peaksOf } from '../../waveform.ts';
import { size, time } from '../../words.ts';
import type { Part } from './choices.ts';

const SHORTEST_SECONDS = 0.1;
/** Less is a press that trembled. */
const DRAG_PX = 4;
/** While it plays; otherwise it would look like an edge of the part. */
const CURSOR_PX = 2;
const HOW = 'Drag on the waveform to select a part, or drag its edges.';

type Region = ReturnType<ReturnType<typeof RegionsPlugin.create>['addRegion']>;

export interface TrimListener {
  /** @param seconds of the file */
  readonly onKnown: (seconds: number) => void;
  readonly onNote: (text: string) => void;
  /** The browser cannot play it. */
  readonly onUnplayable: () => void;
  /** Somebody has dragged. */
  readonly onPart: (start: number, end: number) => void;
  readonly onPlaying: (isPlaying: boolean) => void;
  /** What is wanted now. */
  readonly part: () => Part;
}

export interface TrimDrawing {
  showPart(): void;
  togglePlaying(): void;
  end(): void;
}

export function drawTrim(container: HTMLElement, file: File, listener: TrimListener): TrimDrawing {
  const media = new Audio();
  media.preload = 'metadata';
  media.src = URL.createObjectURL(file);
  let drawing: Drawing | undefined;
  let region: Region | undefined;
  let isOver = false;
  const ending = new AbortController();
  const once = { once: true, signal: ending.signal };

  media.addEventListener('error', listener.onUnplayable, once);
  media.addEventListener(
    'loadedmetadata',
    () => {
      if (!Number.isFinite(media.duration) || media.duration === 0) listener.onUnplayable();
      else void draw(media.duration).catch(() => !isOver && listener.onUnplayable());
    },
    once,
  );

  async function draw(seconds: number): Promise<void> {
    listener.onKnown(seconds);
    listener.onNote(`${time(seconds)} in all. ${HOW}`);
    const { default: Regions } = await import('wavesurfer.js/dist/plugins/regions.js');
    if (isOver) return;
    const regions = Regions.create();
    const drawn = await drawWaveform(container, media, seconds, { plugins: [regions], cursorWidth: 0 });
    if (isOver) {
      drawn.end();
      return;
    }
    drawing = drawn;
    regions.on('region-update', ({ start, end }) => listener.onPart(start, end));
    drawn.surfer.on('ready', () => {
      regions.clearRegions();
      region = regions.addRegion({ ...shown(seconds), drag: false, minLength: SHORTEST_SECONDS });
    });
    selectByDragging(container, ending.signal, seconds, (start, end) => {
      region?.setOptions({ start, end });
      listener.onPart(start, end);
    });
    const peaks = await peaksOf(file, seconds).catch(() => undefined);
    if (isOver) return;
    if (peaks === undefined) listener.onNote(`${time(seconds)} in all. ${whyFlat(file, seconds)} ${HOW}`);
    else drawn.setPeaks(peaks);
  }

  function shown(seconds: number): { start: number; end: number } {
    const { start = 0, end = seconds } = listener.part();
    return { start, end: Math.min(end, seconds) };
  }

  function play(): void {
    const { start = 0 } = listener.part();
    media.currentTime = start;
    drawing?.surfer.setOptions({ cursorWidth: CURSOR_PX });
    media.play().then(follow, () => listener.onPlaying(false));
    listener.onPlaying(true);
  }

  function follow(): void {
    const { end = Number.POSITIVE_INFINITY } = listener.part();
    if (media.currentTime >= end) media.pause();
    if (!media.paused) {
      requestAnimationFrame(follow);
      return;
    }
    if (!isOver) drawing?.surfer.setOptions({ cursorWidth: 0 });
    listener.onPlaying(false);
  }

  return {
    showPart: () => region?.setOptions(shown(media.duration)),
    togglePlaying() {
      if (media.paused) play();
      else media.pause();
    },
    end() {
      isOver = true;
      ending.abort();
      media.pause();
      drawing?.end();
      URL.revokeObjectURL(media.src);
    },
  };
}

function whyFlat(file: File, seconds: number): string {
  return file.size > MOST_BYTES || seconds > MOST_SECONDS
    ? `No waveform for files over ${size(MOST_BYTES)} or ${MOST_SECONDS / 60} minutes.`
    : 'This browser cannot draw the waveform.';
}

/** The library lets nobody drag where a region lies, and one lies everywhere until a part is chosen. */
function selectByDragging(
  container: HTMLElement,
  signal: AbortSignal,
  seconds: number,
  onPart: (start: number, end: number) => void,
): void {
  const timeAt = ({ clientX }: PointerEvent): number => {
    const { left, width } = container.getBoundingClientRect();
    return Math.min(1, Math.max(0, (clientX - left) / width)) * seconds;
  };
  container.addEventListener(
    'pointerdown',
    (down) => {
      if (down.button !== 0 || isOnHandle(down)) return;
      const from = timeAt(down);
      const dragging = new AbortController();
      const options = { signal: AbortSignal.any([signal, dragging.signal]) };
      let isDrag = false;
      container.addEventListener(
        'pointermove',
        (move) => {
          if (move.buttons === 0) dragging.abort();
          isDrag ||= Math.abs(move.clientX - down.clientX) >= DRAG_PX;
          if (!isDrag || move.buttons === 0) return;
          container.setPointerCapture(move.pointerId);
          const to = timeAt(move);
          const start = Math.min(from, to);
          onPart(start, Math.max(from, to, start + SHORTEST_SECONDS));
        },
        options,
      );
      for (const end of ['pointerup', 'pointercancel'] as const) {
        container.addEventListener(end, () => dragging.abort(), options);
      }
    },
    { signal },
  );
}

const isOnHandle = (event: PointerEvent): boolean =>
  event.composedPath().some((one) => one instanceof Element && one.part.contains('region-handle'));
