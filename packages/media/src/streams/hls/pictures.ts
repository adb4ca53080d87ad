/**
 * Where the sound of a stream of HLS begins beside its pictures. No playlist says; the timestamps of all renditions are of one clock (RFC 8216 section
 * 6.2.4), so that the first of the pictures is second 0, unless the sound is there before. ffmpeg and hls.js take it so.
 */
import { deadline } from 'soundpost-base/deadline';
import { MediaFailure } from '../../failure.ts';
import { UnsupportedLayout } from '../../sparse/mp4/boxes.ts';
import { fetchBytes, fetchText, type StreamContext } from '../fetch.ts';
import { fragmentStartSeconds } from '../join/fragment.ts';
import { earliestSeconds, PACKET_BYTES } from '../join/transport-packets.ts';
import type { Presentation, Segment } from '../presentation.ts';
import { parseMedia } from './media.ts';
import { linesOf } from './tags.ts';

/** More than that a header of pictures is hardly ever. */
const MAX_INIT_BYTES = 64 * 1024;

/** Tables and the first picture's timestamp lie in the first packets, and the times of fMP4 in front of the list of its samples. */
const HEAD_BYTES = 20 * PACKET_BYTES;

/** A job over sound does not wait longer for what tells when the pictures begin. */
const PATIENCE_MS = 10_000;

/** The same sound, with its place in the presentation where that can be told. Nothing that goes wrong with the pictures matters to it. */
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

/** @returns undefined where a few kilobytes do not tell, or have another clock than the sound: that of another container */
async function beginningOf(
  url: string,
  sound: Segment,
  context: StreamContext,
): Promise<{ readonly firstSeconds: number; readonly seconds: number } | undefined> {
  const playlist = await fetchText(context, url);
  const { segments } = parseMedia(linesOf(playlist.text), playlist.url);
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
