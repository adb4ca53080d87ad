/** Where the video comes from: a URL, a local file or standard input. */
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { shellWord } from 'soundpost-base/launcher';
import { ServiceError } from 'soundpost-contract/errors';
import { UrlSource } from 'soundpost-contract/job-request';
import { UsageError } from './ending.ts';
import { readPipe } from './named-pipe.ts';
import type { Streams } from './streams.ts';

type VideoSource =
  | {
      readonly kind: 'url';
      readonly url: string;
      readonly headers?: Record<string, string> | undefined;
    }
  | { readonly kind: 'file'; readonly path: string; readonly name: string; readonly sizeBytes: number }
  /** Standard input or a named pipe: readable once, of unknown length. */
  | { readonly kind: 'stream'; readonly open: () => Readable; readonly name: string };

const STDIN = '-';

/** Throws a UsageError for an unreadable source. */
export async function videoSource(
  text: string,
  { stdin }: Pick<Streams, 'stdin'>,
  header: readonly string[] = [],
): Promise<VideoSource> {
  const isAddress = /^https?:\/\//i.test(text);
  if (header.length > 0 && !isAddress) {
    throw new UsageError('--header: only for an http(s) URL');
  }
  if (text === STDIN) {
    if (stdin.isTTY) {
      throw new UsageError('standard input is a terminal; redirect a video to it: < talk.mp4');
    }
    return { kind: 'stream', open: () => stdin, name: 'audio' };
  }
  if (isAddress) {
    const address = URL.parse(text);
    if (address === null) throw new UsageError(`"${text}" is not a URL: write https://host/path`);
    if (address.username !== '' || address.password !== '') {
      throw new UsageError(
        `the URL of ${address.host} contains a name or a password, which Soundpost does not send; download the video yourself and pipe it in: soundpost extract -`,
      );
    }
    return { kind: 'url', url: text, headers: headersOf(header) };
  }
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(text)) {
    throw new UsageError(`"${text}": only http:// and https:// URLs work; for a local file, give its path`);
  }
  const path = resolve(text);
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'ENOENT'
        ? `no such file: ${text}; give the path of a video, an http(s) URL, or - for standard input`
        : `${text} cannot be read: ${error.message}`,
    );
  });
  if (found.isDirectory()) {
    throw new UsageError(`${text} is a folder; give a file in it, such as ${join(text, 'talk.mp4')}`);
  }
  await access(path, constants.R_OK).catch(() => {
    throw new UsageError(`no permission to read ${text}; check it with ls -l ${shellWord(text)}`);
  });
  if (found.isFIFO()) return { kind: 'stream', open: () => readPipe(path), name: 'audio' };
  // ffmpeg gets no links; an open deleted file, such as a here-document, has no path.
  const real = await realpath(path).catch(() => undefined);
  return found.isFile() && real !== undefined
    ? { kind: 'file', path: real, name: basename(path), sizeBytes: found.size }
    : { kind: 'stream', open: () => createReadStream(path), name: 'audio' };
}

/** Writes a stream to a file. Throws PAYLOAD_TOO_LARGE, the signal's reason, or I/O errors. */
export async function spool(
  source: Extract<VideoSource, { kind: 'stream' }>,
  folder: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Extract<VideoSource, { kind: 'file' }>> {
  const path = join(folder, 'input');
  let sizeBytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sizeBytes += chunk.length;
      done(sizeBytes > maxBytes ? tooLarge(maxBytes) : null, chunk);
    },
  });
  await pipeline(source.open(), counted, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal });
  return { kind: 'file', path, name: source.name, sizeBytes };
}

export function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError(
    'PAYLOAD_TOO_LARGE',
    `the video is larger than the ${maxBytes} bytes that MAX_INPUT_BYTES allows`,
  );
}

/** As curl takes them. */
function headersOf(lines: readonly string[]): Record<string, string> | undefined {
  if (lines.length === 0) return undefined;
  const pairs = lines.map((line) => {
    const [, name, value] = /^([^:]+):\s*(.*?)\s*$/s.exec(line) ?? [];
    if (name === undefined || value === undefined) {
      throw new UsageError('--header: use "Name: value", such as "Authorization: Bearer TOKEN"');
    }
    return [name, value];
  });
  const { data, error } = UrlSource.shape.headers.safeParse(Object.fromEntries(pairs));
  const [issue] = error?.issues ?? [];
  if (issue) throw new UsageError(`--header: ${[...issue.path, issue.message].join(' ')}`);
  return data;
}
