/** Where the audio goes. A file appears complete or not at all; only `--force` overwrites. */
import { createReadStream, createWriteStream, rmSync } from 'node:fs';
import { access, constants, link, lstat, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { shellWord } from 'soundpost-base/launcher';
import { ReaderGone, UsageError } from './ending.ts';
import { writePipe } from './named-pipe.ts';
import type { Streams } from './streams.ts';

type Target =
  | { readonly kind: 'stdout'; readonly stream: Streams['stdout'] }
  /** A device. */
  | { readonly kind: 'device'; readonly path: string }
  /** A named pipe. */
  | { readonly kind: 'pipe'; readonly path: string }
  | { readonly kind: 'file'; readonly path: string; readonly overwrites: boolean }
  /** Named after the video; a name in use gets a number, unless it can be overwritten. */
  | { readonly kind: 'folder'; readonly folder: string; readonly overwrites: boolean }
  /** Sent to a chat or a destination. */
  | { readonly kind: 'nowhere' };

interface TargetChoices {
  /** As given; `-` is standard output. */
  readonly output?: string | undefined;
  readonly force?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/**
 * Checks before any work.
 * @param fallback used without an option
 * @throws UsageError
 */
export async function chooseTarget(
  choices: TargetChoices,
  fallback: '-' | '.' | 'nowhere',
  { stdout }: Pick<Streams, 'stdout'>,
): Promise<Target> {
  const { output = fallback, force: overwrites = false } = choices;
  if (output === '-') {
    if (choices.json) {
      throw new UsageError('--json and the audio would both go to standard output; give -o a file');
    }
    if (stdout.isTTY) {
      throw new UsageError(
        'the audio would be written to the terminal; give -o a file, or pipe it: | player -',
      );
    }
    return { kind: 'stdout', stream: stdout };
  }
  if (choices.output === undefined && fallback === 'nowhere') return { kind: 'nowhere' };
  const path = resolve(output);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() || /[/\\]$/.test(output)) {
    await demandFolder(path, output);
    return { kind: 'folder', folder: path, overwrites };
  }
  if (found !== undefined && !found.isFile()) return { kind: found.isFIFO() ? 'pipe' : 'device', path };
  // A dangling link occupies the name as well.
  if (!overwrites && (await isTaken(path))) {
    throw new UsageError(`${output} already exists; --force overwrites it`);
  }
  await demandFolder(dirname(path), dirname(output));
  // Overwrites a link's target, not the link: /dev/stdout is one.
  return { kind: 'file', path: found === undefined ? path : await realpath(path), overwrites };
}

/**
 * Where another output goes, beside the target.
 * @param name of its output @param extension of its format
 * @throws UsageError
 */
export async function targetBeside(target: Target, name: string, extension: string): Promise<Target> {
  if (target.kind === 'folder' || target.kind === 'nowhere') return target;
  if (target.kind !== 'file') {
    throw new UsageError('--also: several files cannot go to standard output; give -o a file or a folder');
  }
  const { path, overwrites } = target;
  const stem = basename(path, extname(path));
  const beside = join(dirname(path), `${stem}-${name}.${extension}`);
  if (!overwrites && (await isTaken(beside))) {
    throw new UsageError(`${beside} already exists; --force overwrites it`);
  }
  return { kind: 'file', path: beside, overwrites };
}

async function demandFolder(path: string, given: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isDirectory()) {
    throw new UsageError(`no such folder: ${given}; create it: mkdir -p ${shellWord(given)}`);
  }
  await access(path, constants.W_OK).catch(() => {
    throw new UsageError(`no permission to write to the folder ${given}; give -o another place`);
  });
}

/**
 * @param content a path, or the bytes
 * @param filename used if the target has no name
 * @returns the path of the file; null if it is none
 * @throws ReaderGone; UsageError for a name taken in the meantime; file system errors
 */
export async function deliver(
  target: Target,
  content: string | Readable,
  filename: string,
  signal: AbortSignal,
): Promise<string | null> {
  const bytes = (): Readable => (typeof content === 'string' ? createReadStream(content) : content);
  switch (target.kind) {
    case 'nowhere':
      return null;
    case 'stdout':
      await pipeline(bytes(), target.stream, { signal, end: false }).catch(orReaderGone);
      return null;
    case 'device':
      await pipeline(bytes(), createWriteStream(target.path, { flags: 'w' }), { signal }).catch(orReaderGone);
      return target.path;
    case 'pipe':
      await pipeline(bytes(), await writePipe(target.path, signal), { signal }).catch(orReaderGone);
      return target.path;
    case 'file':
      return place(bytes(), target.path, target.overwrites ? overwrite : demandNew, signal);
    case 'folder':
      return place(
        bytes(),
        join(target.folder, safeName(filename)),
        target.overwrites ? overwrite : nextFree,
        signal,
      );
  }
}

/** Unfinished files, to remove at an immediate exit. */
const unfinished = new Set<string>();
process.once('exit', () => {
  for (const path of unfinished) rmSync(path, { force: true });
});

/** @param settle renames the complete file, and returns its name */
async function place(
  content: Readable,
  path: string,
  settle: (part: string, path: string) => Promise<string>,
  signal: AbortSignal,
): Promise<string> {
  const part = join(dirname(path), `.${shortened(basename(path), PART_NAME_BYTES)}.${process.pid}.part`);
  unfinished.add(part);
  try {
    await pipeline(content, createWriteStream(part, { flags: 'wx' }), { signal });
    signal.throwIfAborted();
    return await settle(part, path);
  } finally {
    await rm(part, { force: true });
    unfinished.delete(part);
  }
}

async function overwrite(part: string, path: string): Promise<string> {
  await rename(part, path);
  return path;
}

async function demandNew(part: string, path: string): Promise<string> {
  if (await renameNew(part, path)) return path;
  throw new UsageError(`${path} was created while this command ran; --force overwrites it`);
}

/** `talk.mp3`, `talk-2.mp3`, …: even if another command takes a name at the same time. */
async function nextFree(part: string, path: string): Promise<string> {
  const extension = extname(path);
  const stem = path.slice(0, path.length - extension.length);
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? path : `${stem}-${count}${extension}`;
    if (await renameNew(part, name)) return name;
  }
}

/** A link, unlike a rename, never overwrites; some file systems have none. False: name in use. */
async function renameNew(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
  } catch {
    if (await isTaken(to)) return false;
    await rename(from, to);
  }
  return true;
}

async function isTaken(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/** Of 255 bytes in file systems; leaves room for a number and for a part's suffix. */
const NAME_BYTES = 240;
const PART_NAME_BYTES = 220;

/** Keeps the extension. */
function shortened(name: string, mostBytes: number): string {
  const extension = extname(name);
  const stem = [...name.slice(0, name.length - extension.length)];
  while (stem.length > 1 && Buffer.byteLength(stem.join('') + extension) > mostBytes) stem.pop();
  return stem.join('') + extension;
}

/** A remote name must not select another folder or hide a file. */
function safeName(filename: string): string {
  const name = (filename.split(/[/\\]/).at(-1) ?? '').replaceAll(/\p{Cc}/gu, '').replace(/^\.+/, '');
  return name === '' ? 'audio' : shortened(name, NAME_BYTES);
}

function orReaderGone(error: unknown): never {
  throw hasCode(error, 'EPIPE') ? new ReaderGone('standard output was closed', { cause: error }) : error;
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
