/**
 * Where an HLS stream's audio begins beside its pictures. No playlist says so, but timestamps of
 * all renditions share a clock (RFC 8216 section 6.2.4): second 0 is the first picture, or earlier
 * audio. ffmpeg and hls.js agree.
 */
import { deadline } from 'soundpost-base/deadline';
import { MediaFailure } from '../../failure.ts';
import { UnsupportedLayout } from '../../sparse/mp4/boxes.ts';
import { fetchBytes, fetchPlaylist, type StreamContext } from '../fetch.ts';
import { fragmentStartSeconds } from '../join/fragment.ts';
import { earliestSeconds, PACKET_BYTES } from '../join/transport-packets.ts';
import type { Presentation, Segment } from '../presentation.ts';

/** Headers of pictures are hardly ever larger. */
const MAX_INIT_BYTES = 64 * 1024;

/** The first packets have tables and the first timestamp; fMP4 has times before its sample list. */
const HEAD_BYTES = 20 * PACKET_BYTES;

/** A job for audio waits no longer to learn when the pictures begin. */
const PATIENCE_MS = 10_000;

/** The audio, with its position in the presentation if known. Faults of pictures do not matter. */
export async function besidePictures(
  sound: Presentation,
  picturesUrl: string,
  context: StreamContext,
): Promise<Presentation> {
  const [first, ...others] = sound.segments;
  if (first === undefined) return sound;
  using patience = deadline(PATIENCE_MS, { signal: context.signal });
  const { signal } = patience;
  const pictures = await beginningOf(picturesUrl, first, { ...context, signal }).catch((error) => {
    context.signal.throwIfAborted();
    const isTheirs =
      error instanceof MediaFailure || error instanceof UnsupportedLayout || context.isFetchFailure(error);
    if (!isTheirs && !signal.aborted) throw error;
  });
  if (pictures === undefined) return sound;
  const { firstSeconds, seconds } = pictures;
  const segments = [{ ...first, breaksClock: true, mediaZeroSeconds: -firstSeconds }, ...others];
  return { segments, picturesSeconds: seconds };
}

/** @returns undefined if a few kilobytes do not suffice, or another container has another clock */
async function beginningOf(
  url: string,
  sound: Segment,
  context: StreamContext,
): Promise<{ readonly firstSeconds: number; readonly seconds: number } | undefined> {
  const { segments } = await fetchPlaylist(context, url);
  const [first] = segments;
  if (first === undefined || (first.init === undefined) !== (sound.init === undefined)) return undefined;
  if (first.encryption !== undefined || first.init?.encryption !== undefined) return undefined;
  const start = first.span?.start ?? 0;
  const head = await fetchBytes(
    context,
    { url: first.url, span: { start, end: start + HEAD_BYTES } },
    HEAD_BYTES,
  );
  const stamp =
    first.init === undefined
      ? earliestSeconds(head)
      : fragmentStartSeconds(await fetchBytes(context, first.init, MAX_INIT_BYTES), head);
  if (stamp === undefined) return undefined;
  const seconds = segments.reduce((sum, segment) => sum + (segment.gapSeconds ?? 0) + segment.seconds, 0);
  return { firstSeconds: stamp - (first.gapSeconds ?? 0), seconds };
}
