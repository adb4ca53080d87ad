/**
 * Where the sound of a stream of HLS begins beside its pictures. No playlist says; the timestamps of all renditions are of one clock (RFC 8216 section
 * 6.2.4), so that the first of the pictures is second 0, unless the sound is there before. ffmpeg and hls.js take it so.
 */
import { MediaFailure } from '../../media/failure.ts';
import { fetchBytes, fetchText, type StreamContext } from '../fetch.ts';
import { earliestSeconds, PACKET_BYTES } from '../join/transport-packets.ts';
import type { Presentation } from '../presentation.ts';
import { parseMedia } from './media.ts';
import { linesOf } from './tags.ts';

/** Tables and the first picture's timestamp lie in the first packets. */
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
  if (first === undefined || first.init !== undefined) return sound;
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const signal = AbortSignal.any([context.signal, patience]);
  const pictures = await beginningOf(picturesUrl, { ...context, signal }).catch((error) => {
    context.signal.throwIfAborted();
    const isTheirs = error instanceof MediaFailure || context.isFetchFailure(error);
    if (!isTheirs && !patience.aborted) throw error;
  });
  if (pictures === undefined) return sound;
  const { firstSeconds, seconds } = pictures;
  const segments = [{ ...first, breaksClock: true, mediaZeroSeconds: -firstSeconds }, ...others];
  return { segments, picturesSeconds: seconds };
}

/** @returns undefined where it cannot be told by a few kilobytes of a transport stream */
async function beginningOf(
  url: string,
  context: StreamContext,
): Promise<{ readonly firstSeconds: number; readonly seconds: number } | undefined> {
  const playlist = await fetchText(context, url);
  const { segments } = parseMedia(linesOf(playlist.text), playlist.url);
  const [first] = segments;
  if (first === undefined || first.init !== undefined || first.encryption !== undefined) return undefined;
  const start = first.span?.start ?? 0;
  const head = await fetchBytes(
    context,
    { url: first.url, span: { start, end: start + HEAD_BYTES } },
    HEAD_BYTES,
  );
  const stamp = earliestSeconds(head);
  if (stamp === undefined) return undefined;
  const seconds = segments.reduce((sum, segment) => sum + (segment.gapSeconds ?? 0) + segment.seconds, 0);
  return { firstSeconds: stamp - (first.gapSeconds ?? 0), seconds };
}
