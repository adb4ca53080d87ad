/** Resolves after the time. Rejects with the signal's reason if aborted first. */
export async function delay(timeMs: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, timeMs);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
