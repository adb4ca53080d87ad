/** A step that takes too long is ended, and the job is tried again. */
import { expect, it } from 'vitest';
import { withinLimit } from '../../src/worker/extraction.ts';

const SOON_MS = 20;

const job = () => new AbortController();

/** Goes on until it is told to end. */
const heeding = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

it('gives back what the step made in time', async () => {
  expect(await withinLimit('download', job().signal, async () => 'a video', SOON_MS)).toBe('a video');
});

it('ends a step that heeds its signal, with a failure that is tried again', async () => {
  await expect(withinLimit('download', job().signal, heeding, SOON_MS)).rejects.toMatchObject({
    code: 'INTERNAL_ERROR',
    message: 'the job failed because downloading took too long',
  });
});

it('leaves a step that heeds nothing to itself', async () => {
  const hangs = () => new Promise<never>(() => undefined);
  await expect(withinLimit('finalize', job().signal, hangs, SOON_MS, SOON_MS)).rejects.toMatchObject({
    code: 'INTERNAL_ERROR',
    message: 'the job failed because storing the result took too long',
  });
});

it('waits for what a step still does after its end was asked for', async () => {
  let tidied = false;
  const tidying = async (signal: AbortSignal) => {
    await heeding(signal).catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    tidied = true;
    throw signal.reason;
  };
  await expect(withinLimit('extract', job().signal, tidying, SOON_MS)).rejects.toThrow('took too long');
  expect(tidied).toBe(true);
});

it("passes the job's own end on", async () => {
  const cancelled = job();
  const step = withinLimit('analyze', cancelled.signal, heeding);
  cancelled.abort(new Error('cancelled'));
  await expect(step).rejects.toThrow('cancelled');
});
