// The microphone, as far as the browser lets a page have it: on https and on localhost.

export function canRecord() {
  return navigator.mediaDevices !== undefined && typeof MediaRecorder === 'function';
}

/**
 * Begins to record. `finished` resolves with the sound, or with null when it was cancelled.
 * @param {(seconds: number) => void} onTime called several times a second
 */
export async function record(onTime) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(stream);
  const parts = [];
  const startedAt = performance.now();
  let cancelled = false;
  onTime(0);
  const timer = setInterval(() => onTime((performance.now() - startedAt) / 1000), 200);
  recorder.addEventListener('dataavailable', ({ data }) => parts.push(data));
  const finished = new Promise((resolve) => {
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
