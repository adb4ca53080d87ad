/** The microphone, as far as the browser lets a page have it: on https and on localhost. */

export interface Recording {
  /** The sound; null when it was cancelled. */
  readonly finished: Promise<Blob | null>;
  finish(): void;
  cancel(): void;
}

export function canRecord(): boolean {
  // Without https a page has no such thing, whatever the types say.
  return 'mediaDevices' in navigator && typeof MediaRecorder === 'function';
}

/** Begins to record. @param onTime called several times a second, with seconds */
export async function record(onTime: (seconds: number) => void): Promise<Recording> {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(stream);
  const parts: Blob[] = [];
  const startedAt = performance.now();
  let cancelled = false;
  onTime(0);
  const timer = setInterval(() => onTime((performance.now() - startedAt) / 1000), 200);
  recorder.addEventListener('dataavailable', ({ data }) => parts.push(data));
  const finished = new Promise<Blob | null>((resolve) => {
    recorder.addEventListener('stop', () => {
      clearInterval(timer);
      for (const track of stream.getTracks()) {
        track.stop();
      }
      // The type as it is: `audio/webm;codecs=opus` here, `audio/mp4` there.
      resolve(cancelled ? null : new Blob(parts, { type: recorder.mimeType }));
    });
  });
  recorder.start();
  return {
    finished,
    finish: () => recorder.stop(),
    cancel: () => {
      cancelled = true;
      recorder.stop();
    },
  };
}
