/**
 * Static files of a page: kept in memory, compressed once, revalidated by each request. Meant for
 * few and small files.
 */
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import type { Request, RequestHandler, Response } from 'express';

const mediaTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** In order of preference. ETags end with the name, as representations differ (RFC 9110 8.8.3). */
const encodings = {
  br: promisify(brotliCompress),
  gzip: promisify<Buffer, Buffer>(gzip),
  identity: async (bytes: Buffer) => bytes,
} as const;
type Encoding = keyof typeof encodings;

interface Loaded {
  readonly bytes: Buffer;
  readonly hash: string;
  readonly mediaType: string;
  readonly encoded: Map<Encoding, Promise<Buffer>>;
}

/**
 * All files below a folder.
 * @param folder with a slash at the end
 * @param prefix of their paths, such as `console/`
 */
export function filesIn(folder: URL, prefix: string): [string, URL][] {
  const root = fileURLToPath(folder);
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => {
      const path = relative(root, file).split(sep).map(encodeURIComponent).join('/');
      return [`${prefix}${path}`, pathToFileURL(file)];
    });
}

/**
 * Answers GET and HEAD of the paths, relative to its mount; passes on everything else. Loads a file
 * on demand. @param sources files or generated texts by path, without a leading slash
 */
export function staticFiles(sources: ReadonlyMap<string, URL | string>): RequestHandler {
  const loaded = new Map<string, Promise<Loaded>>();
  return async (request, response, next) => {
    const path = request.path.slice(1);
    const source = sources.get(path);
    if (source === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) {
      next();
      return;
    }
    const loading = loaded.get(path) ?? load(source, path);
    loaded.set(path, loading);
    // Do not cache a failure.
    loading.catch(() => loaded.delete(path));
    await send(request, response, await loading);
  };
}

async function load(source: URL | string, path: string): Promise<Loaded> {
  const name = source instanceof URL ? source.pathname : path;
  const mediaType = mediaTypes[extname(name)];
  if (mediaType === undefined) {
    throw new Error(`${path}: files of this kind have no media type in ${import.meta.filename}`);
  }
  const bytes = typeof source === 'string' ? Buffer.from(source) : await readFile(source);
  const hash = createHash('sha256').update(bytes).digest('base64url');
  return { bytes, hash, mediaType, encoded: new Map() };
}

async function send(request: Request, response: Response, file: Loaded): Promise<void> {
  const accepted = request.acceptsEncodings(Object.keys(encodings));
  const encoding: Encoding = accepted === 'br' || accepted === 'gzip' ? accepted : 'identity';
  response.set({
    'Content-Type': file.mediaType,
    // Revalidated each time, because an update of the service updates its pages.
    'Cache-Control': 'no-cache',
    ETag: `"${file.hash}${encoding === 'identity' ? '' : `-${encoding}`}"`,
    Vary: 'Accept-Encoding',
  });
  if (request.fresh) {
    response.status(304).end();
    return;
  }
  const encoded = file.encoded.get(encoding) ?? encodings[encoding](file.bytes);
  file.encoded.set(encoding, encoded);
  const bytes = await encoded;
  if (encoding !== 'identity') {
    response.set('Content-Encoding', encoding);
  }
  response.set('Content-Length', String(bytes.length)).status(200);
  response.end(request.method === 'HEAD' ? undefined : bytes);
}
