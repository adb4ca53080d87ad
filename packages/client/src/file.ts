/** Files to send: Blobs, and in Node paths. */
/** In Node also the path of a file; it is streamed, never held as a whole. */
export type SentFile = Blob | string;

/**
 * The parts of a multipart request. `request` precedes the file, so that the service can read it
 * before the bytes arrive.
 * @param filename default: the file's own name
 * @throws what reading the path threw, such as ENOENT; TypeError for a path outside of Node
 */
export async function formOf(file: SentFile, filename?: string, request?: unknown): Promise<FormData> {
  const form = new FormData();
  if (request !== undefined) {
    form.append('request', JSON.stringify(request));
  }
  const { blob, name } = typeof file === 'string' ? await opened(file) : { blob: file, name: nameOf(file) };
  form.append('file', blob, filename ?? name);
  return form;
}

function nameOf(file: Blob): string {
  return file instanceof File ? file.name : 'upload';
}

async function opened(path: string): Promise<{ blob: Blob; name: string }> {
  const { openAsBlob, promises } = nodeFs();
  if (!(await promises.stat(path)).isFile()) throw new TypeError(`file: ${path} is not a regular file`);
  return { blob: await openAsBlob(path), name: path.split(SEPARATOR).at(-1) ?? path };
}

/** The part of node:fs that is used; browsers have no types for it. */
interface NodeFs {
  openAsBlob(path: string): Promise<Blob>;
  readonly promises: { stat(path: string): Promise<{ isFile(): boolean }> };
}

interface NodeProcess {
  readonly platform: string;
  getBuiltinModule?(name: 'node:fs'): NodeFs;
}

const { process: nodeProcess } = globalThis as { process?: NodeProcess };
const SEPARATOR = nodeProcess?.platform === 'win32' ? /[\\/]/ : /\//;

/** Not an import, which a bundle for browsers could not resolve. */
function nodeFs(): NodeFs {
  const found = nodeProcess?.getBuiltinModule?.('node:fs');
  if (found === undefined) throw new TypeError('file: a path is read by Node 20.16 or newer; pass a Blob');
  return found;
}
