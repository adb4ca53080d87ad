/** Makes a safe name for a downloaded file from untrusted text. */
import { parse } from 'content-disposition';

/** Leaves room for an extension within the 255 bytes that file systems allow. */
const MAX_NAME_BYTES = 150;

/**
 * The first of these with an extension, or the first of all: the server's Content-Disposition, the
 * requested path, the path after redirects.
 * @returns a bare file name, safe on file systems and in a quoted header string, or undefined
 */
export function sourceName(disposition: string | undefined, asked: URL, final: URL): string | undefined {
  const names = [dispositionName(disposition), pathName(asked), pathName(final)].flatMap((name) => {
    const safe = safeName(name ?? '');
    return safe === '' ? [] : [safe];
  });
  return names.find((name) => /[^.]\.[A-Za-z0-9]{1,8}$/.test(name)) ?? names[0];
}

function dispositionName(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  try {
    return parse(header).parameters.filename;
  } catch {
    return undefined; // Malformed headers are common; the path is as good.
  }
}

function pathName(url: URL): string | undefined {
  const last = url.pathname.slice(url.pathname.lastIndexOf('/') + 1);
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

function safeName(name: string): string {
  const base = name.split(/[/\\]/).at(-1) ?? '';
  const clean = base
    .normalize('NFC')
    .toWellFormed()
    // Control and format characters, such as bidi overrides; characters with a special meaning.
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .replace(/[<>:"|?*]/g, '_')
    .replace(/^[\s.]+|[\s.]+$/g, '');
  return cutToBytes(clean);
}

/** Cuts the stem, so that the extension stays. */
function cutToBytes(name: string): string {
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name;
  const dot = name.lastIndexOf('.');
  const extension = dot > 0 && name.length - dot <= 10 ? name.slice(dot) : '';
  let stem = [...(extension === '' ? name : name.slice(0, dot))];
  while (Buffer.byteLength(stem.join('') + extension) > MAX_NAME_BYTES) stem = stem.slice(0, -1);
  return stem.join('').trimEnd() + extension;
}
