/**
 * `GET /media/<id>.enc`: a voice note's encrypted copy. It needs no API key: readers have the media
 * key from the message. It never changes, so it can be cached forever (RFC 8246).
 */
import { pipeline } from 'node:stream/promises';
import type { RequestHandler } from 'express';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import {
  type ByteRange,
  ObjectNotFound,
  type Storage,
  type StoredObject,
} from 'soundpost-kit/storage/storage';
import { MEDIA_ID, storageFailure, storageKey } from '../media-store.ts';

export function media(storage: Storage): RequestHandler {
  return async (request, response) => {
    const id = /^([0-9a-f]+)\.enc$/.exec(String(request.params.file))?.[1] ?? '';
    const found = MEDIA_ID.test(id) ? await stat(storage, storageKey(id)) : undefined;
    if (found === undefined) {
      throw missing();
    }
    response.set({
      'Content-Type': 'application/octet-stream',
      'Cache-Control': 'public, max-age=31536000, immutable',
      'Accept-Ranges': 'bytes',
      ETag: `"${id}"`,
      // Clients of any origin can play what they have the key for.
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'Access-Control-Allow-Origin': '*',
    });
    if (request.fresh) {
      response.status(304).end();
      return;
    }
    const range = wanted(request.range(found.sizeBytes), request.get('if-range'), `"${id}"`);
    if (range === 'unsatisfiable') {
      response.status(416).set('Content-Range', `bytes */${found.sizeBytes}`).end();
      return;
    }
    const { start, end } = range ?? { start: 0, end: found.sizeBytes - 1 };
    if (range !== undefined) {
      response.status(206).set('Content-Range', `bytes ${start}-${end}/${found.sizeBytes}`);
    }
    response.setHeader('Content-Length', end - start + 1);
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    await pipeline(await open(storage, storageKey(id), range), response);
  };
}

/** Several ranges get the whole file, as RFC 9110, 14.2 allows. */
function wanted(
  ranges: ReturnType<Parameters<RequestHandler>[0]['range']>,
  ifRange: string | undefined,
  etag: string,
): ByteRange | 'unsatisfiable' | undefined {
  if (ranges === undefined || ranges === -2 || (ifRange !== undefined && ifRange !== etag)) {
    return undefined;
  }
  if (ranges === -1) {
    return 'unsatisfiable';
  }
  return ranges.type === 'bytes' && ranges.length === 1 ? ranges[0] : undefined;
}

async function stat(storage: Storage, key: string): Promise<StoredObject | undefined> {
  try {
    return await storage.stat(key);
  } catch (error) {
    throw storageFailure(error);
  }
}

async function open(storage: Storage, key: string, range: ByteRange | undefined) {
  try {
    return await storage.read(key, range);
  } catch (error) {
    throw error instanceof ObjectNotFound ? missing() : storageFailure(error);
  }
}

function missing(): GatewayError {
  return new GatewayError('not_found', 'no such media, or it has expired');
}
