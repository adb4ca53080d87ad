/** Brings the video into the workspace, from its URL or from the stored upload. */
import { stat } from 'node:fs/promises';
import { ServiceError } from 'soundpost-contract/errors';
import { outputsOf } from 'soundpost-contract/output-request';
import { ObjectNotFound } from 'soundpost-kit/storage/storage';
import { MediaFailure } from 'soundpost-media/failure';
import { fetchSource } from 'soundpost-media/source';
import type { LocalSource, SourceRequest } from 'soundpost-media/source-request';
import { streamKindOf } from 'soundpost-media/streams/detect';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import { openSource } from '../../jobs/sources.ts';
import { uploadStorageKey } from '../../jobs/uploads/record.ts';
import type { Step, StepContext } from '../step.ts';

export const download: Step<undefined, LocalSource> = async (_input, context) => {
  const { source } = context.payload;
  context.report('downloading_video', 0);
  return source.type === 'url'
    ? downloadUrl(source.url, context)
    : openUpload(source.file, source.name, context);
};

/** @throws ServiceError, since no later try could open them */
function headersOf({ jobId, payload, services }: StepContext): SourceRequest['headers'] {
  try {
    const source = openSource(services.sealer, jobId, payload.source);
    return source.type === 'url' ? source.headers : undefined;
  } catch (cause) {
    throw new ServiceError('DOWNLOAD_FAILED', 'the video could not be downloaded', {
      details: 'the headers of the source cannot be decrypted because SECRET_KEY has changed',
      cause,
    });
  }
}

async function downloadUrl(url: string, context: StepContext): Promise<LocalSource> {
  const { services, payload, workspace, signal, space, logger } = context;
  try {
    return await fetchSource({
      url,
      headers: headersOf(context),
      outputs: outputsOf(payload),
      workspace,
      tools: services.tools,
      outbound: services.outbound,
      ...services.limits,
      signal,
      makeRoom: (bytes) => space.grow(bytes, signal),
      onProgress: (fraction) => context.report('downloading_video', fraction),
      onFetched: (bytes) => services.observer?.sourceFetched(bytes),
      logger,
      admitStreamRequest: services.streamRequests?.of(payload.tenant, context.jobId),
    });
  } catch (error) {
    if (error instanceof OutboundRefused) {
      logger.warn({ reason: error.reason }, 'source refused');
    }
    if (error instanceof OutboundRefused || error instanceof OutboundFailed) {
      const details = error instanceof OutboundFailed ? reasonOf(error, url) : error.message;
      throw new ServiceError('DOWNLOAD_FAILED', 'the video could not be downloaded', {
        details,
        cause: error,
      });
    }
    throw error;
  }
}

/** With the host as the caller wrote it: never a redirect's, and no IP address (decisions A7). */
function reasonOf({ status, message }: OutboundFailed, url: string): string {
  const { hostname } = new URL(url);
  const isAddress = /^[\d.]+$|^\[/.test(hostname);
  if (status) return isAddress ? `HTTP ${status}` : `HTTP ${status} from ${hostname}`;
  return isAddress ? message : `${message}: ${hostname}`;
}

async function openUpload(
  file: string,
  name: string,
  { services, workspace, signal, space }: StepContext,
): Promise<LocalSource> {
  try {
    let roomBytes = 0;
    const copying = {
      signal,
      // Claims once, however often the copy restarts.
      async makeRoom(bytes: number) {
        await space.grow(bytes - roomBytes, signal);
        roomBytes = bytes;
      },
    };
    const path = await services.retryUntilUp(signal, () =>
      services.storage.localCopy(uploadStorageKey(file), workspace, copying),
    );
    if ((await streamKindOf(path)) !== undefined)
      throw new MediaFailure(
        'INVALID_VIDEO',
        'the file is a playlist, which does not contain the audio; use its URL instead',
      );
    return { path, name, sizeBytes: (await stat(path)).size };
  } catch (error) {
    if (error instanceof ObjectNotFound) {
      throw new ServiceError('DOWNLOAD_FAILED', 'the upload has expired', { cause: error });
    }
    throw error;
  }
}
