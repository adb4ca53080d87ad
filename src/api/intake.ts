/** Taking a file in: what it is is looked at while it streams into the storage. */
import { randomBytes } from 'node:crypto';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ServiceError } from '../contract/errors.ts';
import { SNIFF_BYTES, sniffContainer } from '../media/sniff.ts';
import { saveUpload, type Upload, uploadStorageKey } from '../queue/uploads.ts';
import type { ApiServices } from './route.ts';

const LONGEST_NAME = 200;

/** Stores a file as an upload of the tenant. Throws INVALID_VIDEO when its first bytes are no known container. */
export async function takeIn(
  { storage, redis, settings }: ApiServices,
  tenant: string,
  file: { readonly name: string; readonly content: Readable },
): Promise<Upload> {
  const id = `upl_${randomBytes(8).toString('hex')}`;
  const inspect = containersOnly();
  const [{ sizeBytes }] = await Promise.all([
    storage.write(uploadStorageKey(id), inspect),
    pipeline(file.content, inspect),
  ]);
  const upload: Upload = {
    file: id,
    tenant,
    name: cleanName(file.name),
    sizeBytes,
    expiresAtMs: Date.now() + settings.uploadTtlSeconds * 1000,
  };
  await saveUpload(redis, upload);
  return upload;
}

/** Lets a stream through once its head is that of a container that we read. */
function containersOnly(): Transform {
  let head: Buffer | undefined = Buffer.alloc(0);
  const demandContainer = (): void => {
    if (sniffContainer(head ?? Buffer.alloc(0)) === undefined) {
      throw new ServiceError('INVALID_VIDEO', 'the file is no video or audio that the service knows');
    }
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      if (head === undefined) {
        callback(null, chunk);
        return;
      }
      head = Buffer.concat([head, chunk]);
      if (head.length < SNIFF_BYTES) {
        callback();
        return;
      }
      settle(callback, () => {
        demandContainer();
        this.push(head);
        head = undefined;
      });
    },
    flush(callback) {
      settle(callback, () => {
        if (head !== undefined) {
          demandContainer();
          this.push(head);
        }
      });
    },
  });
}

function settle(callback: (error?: Error | null) => void, work: () => void): void {
  try {
    work();
    callback();
  } catch (error) {
    callback(error instanceof Error ? error : new Error(String(error)));
  }
}

/** A caller's name for a file is shown and reused, so it loses folders and whatever cannot be printed. */
function cleanName(name: string): string {
  const base = name.split(/[/\\]/).at(-1) ?? '';
  return base.replaceAll(/\p{Cc}/gu, '').slice(0, LONGEST_NAME) || 'upload';
}
