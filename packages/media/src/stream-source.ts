/** A source that is an HLS or DASH stream: its segments go to one local file, read as any other. */
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from 'soundpost-contract/errors';
import type { NamedOutput } from 'soundpost-contract/output-request';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import { type Admit, tooLarge } from 'soundpost-outbound/exchange';
import type { OriginHeaders } from 'soundpost-outbound/origin-headers';
import { MediaFailure } from './failure.ts';
import { type Probe, probe } from './probe.ts';
import type { LocalSource, SourceRequest } from './source-request.ts';
import type { Described } from './streams/description.ts';
import type { StreamKind } from './streams/detect.ts';
import { requirePlaylistSize, type StreamContext } from './streams/fetch.ts';
import { JoinedFile } from './streams/join/join.ts';
import { Losses } from './streams/losses.ts';
import { openStream } from './streams/open.ts';
import type { Presentation, Segment } from './streams/presentation.ts';
import { fetchSegments } from './streams/segments/fetch.ts';
import { CLOCK_TOLERANCE_SECONDS } from './timeline.ts';

interface Playlist {
  readonly kind: StreamKind;
  /** Path of the downloaded description, which the joined file replaces. */
  readonly path: string;
  /** Its address. */
  readonly url: string;
  /** The caller's, for what it names at their origin. */
  readonly originHeaders?: OriginHeaders | undefined;
  /**
   * Whether its server did not say where it ends: a lost connection ends it, too. Default it did.
   */
  readonly isOpenEnded?: boolean;
}

type Asked = Parameters<Admit>[0];

interface Fetched {
  readonly isTrack: boolean;
  /** Names of the transcripts whose track is not in it. */
  readonly elsewhere: readonly string[];
}

type StreamSource = Fetched &
  /** All of it is one file, whose timestamp 0 is at `zeroSeconds` of the presentation. */
  (
    | { readonly fileUrl: string; readonly zeroSeconds: number }
    | { readonly sizeBytes: number; readonly probe: Probe }
  );

/** Reserved at a time, since a segment's size is not known before. */
const ROOM_STEP_BYTES = 16 * 1024 * 1024;

/**
 * @returns the file at the playlist's path afterwards
 * @throws {MediaFailure} when it cannot be read; ServiceError DOWNLOAD_FAILED where it names an
 * address that is not allowed; what a download throws
 */
export async function fetchStream(playlist: Playlist, request: SourceRequest): Promise<StreamSource> {
  const { outbound, maxInputBytes, signal, workspace, outputs, logger, admitStreamRequest } = request;
  const folder = join(workspace, 'segments');
  const { size: sizeBytes } = await stat(playlist.path);
  requirePlaylistSize(sizeBytes);
  await mkdir(folder, { mode: 0o700 });
  try {
    const { originHeaders } = playlist;
    const pieces = { maxBytes: maxInputBytes, signal, originHeaders };
    return await outbound.fetchPieces(pieces, async (fetch) => {
      const stream: StreamContext = {
        folder,
        signal,
        reading: { signal, charge: request.tools.meter, owner: request.tools.owner },
        makeRoom: roomBySteps(request),
        isFetchFailure: (error) => error instanceof OutboundFailed || error instanceof OutboundRefused,
        async fetch({ isSegment = false, ...piece }, take) {
          requireTls(piece.url, playlist);
          const admit = admitStreamRequest && ((asked: Asked) => admitStreamRequest({ ...asked, isSegment }));
          return fetch({ ...piece, admit }, take);
        },
      };
      const { kind, path, url, isOpenEnded } = playlist;
      const asked = outputs.length === 0 ? [undefined] : outputs.map(({ track }) => track);
      const described = { kind, url, isOpenEnded, path, sizeBytes, asked };
      // A playlist that was cut off is downloaded to this path again.
      const { content, isTrack, held } = await openStream(described, stream).finally(() => rm(path));
      const fetched = { isTrack, elsewhere: transcriptsElsewhere(outputs, held) };
      if ('fileUrl' in content) {
        requireTls(content.fileUrl, playlist);
        return { ...content, ...fetched };
      }
      return { ...(await joinSegments(content, playlist.path, stream, request)), ...fetched };
    });
  } catch (error) {
    if (!(error instanceof OutboundRefused)) throw error;
    logger?.warn({ reason: error.reason }, 'source refused');
    throw new ServiceError('DOWNLOAD_FAILED', 'the video could not be downloaded', {
      details: 'the stream names an address that is not allowed',
      cause: error,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** As for redirects: a playlist fetched by TLS must not lead to content that others can change. */
function requireTls(url: string, playlist: Playlist): void {
  if (playlist.url.startsWith('https:') && /^http:/i.test(url))
    throw new OutboundRefused('http inside https');
}

/**
 * Of a stream one rendition is fetched: the first output's.
 * @returns names of the transcripts whose track is in another one: only these fail
 * @throws {MediaFailure} when another output's track is
 */
function transcriptsElsewhere(outputs: readonly NamedOutput[], held: Described['held']): string[] {
  const elsewhere: string[] = [];
  for (const [nth, output] of outputs.entries()) {
    const isHeld = held[nth];
    if (isHeld === true) continue;
    if (output.format !== 'transcript') {
      if (typeof isHeld === 'object') throw new MediaFailure(isHeld.code, isHeld.details);
      throw new MediaFailure(
        'EXTRACTION_FAILED',
        'a job can use only one audio track of an HLS or DASH stream; choose the same track in all outputs',
      );
    }
    elsewhere.push(output.name);
  }
  return elsewhere;
}

async function joinSegments(
  presentation: Presentation,
  path: string,
  stream: StreamContext,
  { tools, maxInputBytes, maxAudioSeconds, signal, onProgress, onFetched, logger }: SourceRequest,
): Promise<Pick<LocalSource, 'sizeBytes' | 'missing'> & { probe: Probe }> {
  const { segments } = presentation;
  const durationSeconds = secondsOf(segments);
  if (durationSeconds > maxAudioSeconds + 1)
    throw new MediaFailure('INVALID_VIDEO', `the audio is longer than ${maxAudioSeconds} s`);
  const joined = await JoinedFile.open(path, stream.makeRoom);
  const losses = new Losses(presentation);
  try {
    let doneSeconds = 0;
    await fetchSegments(stream, segments, async (fetched) => {
      doneSeconds += secondsOf([fetched.segment]);
      onProgress?.(durationSeconds > 0 ? doneSeconds / durationSeconds : 0);
      const segment = losses.take(fetched);
      if ('failure' in fetched) return;
      const { file, ...part } = fetched;
      await joined.append({ ...part, segment, reading: stream.reading }, file);
      if (joined.sizeBytes > maxInputBytes) throw tooLarge();
    });
    losses.requireSound();
    await joined.finish();
  } finally {
    await joined.close();
  }
  const { sizeBytes } = joined;
  const startSeconds = startOf(losses.first, presentation, joined);
  onFetched?.({ size: sizeBytes, fetched: sizeBytes });
  const { missing, longestGapSeconds } = losses;
  logger?.debug({ segments: segments.length, sizeBytes, startSeconds, missing }, 'stream joined');
  const known = { startSeconds, durationSeconds, longestGapSeconds };
  return {
    sizeBytes,
    probe: await probe(tools, path, { signal, known }),
    ...(missing === undefined ? {} : { missing }),
  };
}

function secondsOf(segments: Presentation['segments']): number {
  return segments.reduce((sum, { seconds, gapSeconds = 0 }) => sum + gapSeconds + seconds, 0);
}

/** @param first segment of the joined file */
function startOf(
  first: Segment | undefined,
  { picturesSeconds }: Presentation,
  { startSeconds }: JoinedFile,
): number {
  const isPlaced =
    first?.mediaZeroSeconds !== undefined && startSeconds < (picturesSeconds ?? Number.POSITIVE_INFINITY);
  const seconds = isPlaced ? startSeconds : (first?.gapSeconds ?? 0);
  return seconds > CLOCK_TOLERANCE_SECONDS ? seconds : 0;
}

function roomBySteps({ makeRoom }: SourceRequest): (bytes: number) => Promise<void> {
  let neededBytes = 0;
  let claimedBytes = 0;
  let claiming = Promise.resolve();
  const claim = async (): Promise<void> => {
    while (claimedBytes < neededBytes) {
      await makeRoom(ROOM_STEP_BYTES);
      claimedBytes += ROOM_STEP_BYTES;
    }
  };
  return (bytes) => {
    neededBytes += bytes;
    if (claimedBytes >= neededBytes) return Promise.resolve();
    // One claim at a time.
    claiming = claiming.then(claim);
    return claiming;
  };
}
