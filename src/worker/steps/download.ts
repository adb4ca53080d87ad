/** The video comes to the workspace: from its URL, or from where the upload lies. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from 'soundpost-contract/errors';
import { MediaFailure } from '../../media/failure.ts';
import { type Probe, probe } from '../../media/probe.ts';
import { OutboundFailed, OutboundRefused } from '../../outbound/errors.ts';
import { wasPutBack } from '../../queue/extraction-consumer.ts';
import { ObjectNotFound } from '../../storage/storage.ts';
import { type StreamKind, streamKindOf } from '../../streams/detect.ts';
import { uploadStorageKey } from '../../uploads/record.ts';
import type { Step, StepContext } from '../step.ts';

export interface LocalVideo {
  readonly path: string;
  /** The caller's or the server's name for it, for display and as the default name of the result. */
  readonly name: string;
  readonly sizeBytes: number;
  /** What ffprobe said of it already, to know what to fetch. */
  readonly probe?: Probe;
  /** Whether the wanted track is all the sound in it: one rendition of a stream. */
  readonly isTrack?: boolean;
  /** Names of the transcripts whose track lies in another rendition of the stream. */
  readonly elsewhere?: readonly string[];
}

export const download: Step<undefined, LocalVideo> = async (_input, context) => {
  const { source } = context.payload;
  context.report('downloading_video', 0);
  return source.type === 'url'
    ? downloadUrl(source.url, context)
    : openUpload(source.file, source.name, context);
};

async function downloadUrl(url: string, context: StepContext): Promise<LocalVideo> {
  try {
    const video = await downloadFile(url, context);
    const kind = video.probe === undefined ? await streamKindOf(video.path) : undefined;
    return kind === undefined ? video : await openStream({ ...video, kind }, context);
  } catch (error) {
    if (error instanceof OutboundRefused) {
      context.logger.warn({ reason: error.reason }, 'source refused');
    }
    if (error instanceof OutboundRefused || error instanceof OutboundFailed) {
      const details =
        error instanceof OutboundFailed && error.status ? `HTTP ${error.status}` : error.message;
      throw new ServiceError('DOWNLOAD_FAILED', 'the video could not be downloaded', {
        details,
        cause: error,
      });
    }
    throw error;
  }
}

interface DownloadedFile extends LocalVideo {
  /** Where it lies. */
  readonly url: string;
}

async function downloadFile(url: string, context: StepContext): Promise<DownloadedFile> {
  const { jobId, services, signal, workspace, space } = context;
  const path = join(workspace, 'source');
  const { source } = context.payload;
  // What is kept of a job is the beginning of its source, and no file that a stream led to.
  const putBack = source.type === 'url' && source.url === url ? services.putBack : undefined;
  let probed: Probe | null = null;
  const downloaded = await services.outbound.downloadParts({
    url,
    file: path,
    maxBytes: services.limits.maxInputBytes,
    signal,
    begun: await putBack?.takeDownload(jobId, path),
    async onBrokenOff(begun) {
      if (wasPutBack(signal)) await putBack?.keep(jobId, path, begun);
    },
    makeRoom: (bytes) => space.grow(bytes, signal),
    onProgress({ receivedBytes, totalBytes }) {
      context.report('downloading_video', totalBytes ? receivedBytes / totalBytes : 0);
    },
    async choose(parts) {
      const { fetchAudioParts } = await import('../audio-parts.ts');
      probed = await fetchAudioParts(parts, path, context);
      return probed !== null;
    },
  });
  const { sizeBytes, filename, partBytes } = downloaded;
  services.observer?.sourceFetched({ size: sizeBytes, fetched: partBytes ?? sizeBytes });
  context.logger.debug({ sizeBytes, partBytes }, 'source downloaded');
  const name = filename ?? 'audio';
  return { path, name, sizeBytes, url: downloaded.url, ...(probed === null ? {} : { probe: probed }) };
}

async function openStream(
  playlist: DownloadedFile & { readonly kind: StreamKind },
  context: StepContext,
): Promise<LocalVideo> {
  const { fetchStream } = await import('../stream-source.ts');
  const { services, signal } = context;
  const { path, name } = playlist;
  const stream = await fetchStream(playlist, context);
  if (!('fileUrl' in stream)) return { ...stream, path, name };
  const { fileUrl, zeroSeconds, isTrack, elsewhere } = stream;
  const { sizeBytes } = await downloadFile(fileUrl, context);
  const probed = await probe(services.tools, path, { signal, known: { zeroSeconds } });
  return { path, name, sizeBytes, probe: probed, isTrack, elsewhere };
}

async function openUpload(
  file: string,
  name: string,
  { services, workspace, signal, space }: StepContext,
): Promise<LocalVideo> {
  try {
    let roomBytes = 0;
    const copying = {
      signal,
      // Once, however often the copy is begun.
      async makeRoom(bytes: number) {
        await space.grow(bytes - roomBytes, signal);
        roomBytes = bytes;
      },
    };
    const path = await services.insist(signal, () =>
      services.storage.localCopy(uploadStorageKey(file), workspace, copying),
    );
    if ((await streamKindOf(path)) !== undefined)
      throw new MediaFailure(
        'INVALID_VIDEO',
        'the file is a playlist, without the sound itself: send its URL',
      );
    return { path, name, sizeBytes: (await stat(path)).size };
  } catch (error) {
    if (error instanceof ObjectNotFound) {
      throw new ServiceError('DOWNLOAD_FAILED', 'the upload has expired', { cause: error });
    }
    throw error;
  }
}
