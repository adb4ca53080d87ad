/** A sound that plays, for whoever shows where it is. */

interface SoundListener {
  /** @param at seconds */
  readonly onPosition?: (at: number) => void;
  readonly onPlaying?: (isPlaying: boolean) => void;
  readonly onFault?: (text: string) => void;
}

export interface Sound {
  readonly media: HTMLAudioElement;
  /** Seconds. */
  readonly duration: number;
  play(): void;
  pause(): void;
  /** @param at seconds */
  seek(at: number): void;
  /** @returns ends it */
  listen(listener: SoundListener): () => void;
  close(): void;
}

/** @param duration seconds @param name of the file, for what is said when it cannot be played */
export function openSound(address: string, duration: number, name: string): Sound {
  const media = new Audio(address);
  media.preload = 'metadata';
  const listeners = new Set<SoundListener>();
  const tellPosition = (at: number): void => {
    for (const { onPosition } of listeners) onPosition?.(at);
  };
  const tellPlaying = (isPlaying: boolean): void => {
    for (const { onPlaying } of listeners) onPlaying?.(isPlaying);
  };
  const tellFault = (text: string): void => {
    for (const { onFault } of listeners) onFault?.(text);
  };
  const unplayable = `This browser cannot play ${name}. Download it instead.`;

  function follow(): void {
    if (media.paused) return;
    tellPosition(media.currentTime);
    requestAnimationFrame(follow);
  }

  media.addEventListener('play', () => tellPlaying(true));
  media.addEventListener('pause', () => tellPlaying(false));
  media.addEventListener('playing', follow);
  media.addEventListener('ended', () => tellPosition(duration));
  media.addEventListener('error', () => tellFault(unplayable));
  return {
    media,
    duration,
    play() {
      media.play().catch((error: unknown) => {
        // Paused or closed before it began.
        if (error instanceof DOMException && error.name === 'AbortError') return;
        tellFault(media.error === null ? `Cannot play: ${messageOf(error)}` : unplayable);
      });
    },
    pause: () => media.pause(),
    seek(at) {
      media.currentTime = at;
      tellPosition(at);
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close() {
      listeners.clear();
      media.pause();
      media.removeAttribute('src');
    },
  };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
