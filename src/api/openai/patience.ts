/**
 * Answers that come late (decisions F1). Clients give up after five or ten minutes without headers,
 * and proxies when nothing is sent.
 */
import type { Response } from 'express';

/** Tests shorten it. */
export const pace = {
  /** Until the first byte, and between those that keep the connection. Waiters renew as often. */
  beatMs: 15_000,
  /** How long a caller that has left may come back. */
  rejoinMs: 60_000,
  /** For how many beats a file that arrives delays the cancelling at most, 30 minutes. */
  mostBeats: 120,
};

/** An answer's form, and the bytes without meaning in it. */
export interface LateForm {
  readonly mediaType: string;
  /** What every answer begins with. */
  readonly head: string;
  readonly filler: string;
}

/**
 * Sends nothing for 15 s, so that a failure until then has its own status, and then fillers until
 * the answer is there.
 * @param work its rejection is for the error handler, which breaks off an answer that has begun
 * @returns once the answer is handed over
 */
export async function answerLate(
  response: Response,
  { mediaType, head, filler }: LateForm,
  work: () => Promise<string>,
): Promise<void> {
  const beat = (): void => {
    if (response.headersSent) {
      response.write(filler);
      return;
    }
    response.status(200).set({ 'Content-Type': mediaType, 'Cache-Control': 'no-store' });
    response.write(head + filler);
  };
  const beating = setInterval(beat, pace.beatMs);
  try {
    const body = await work();
    if (response.headersSent) {
      response.end(body.slice(head.length));
      return;
    }
    const bytes = Buffer.from(body);
    const headers = { 'Content-Type': mediaType, 'Cache-Control': 'no-store' };
    response.status(200).set({ ...headers, 'Content-Length': String(bytes.length) });
    response.end(bytes);
  } finally {
    clearInterval(beating);
  }
}
