/** `--also NAME=FORMAT[,FIELD=VALUE…]`: one more output of the same video, in the words of the API. */
import { UsageError } from './ending.ts';

const FORM = 'NAME=FORMAT[,FIELD=VALUE…], such as preview=opus,end=30 or peaks=waveform,pixelsPerSecond=10';

/** The fields as a request has them; whether they fit is for the contract to say. Throws a UsageError. */
export function alsoOutput(text: string): Record<string, unknown> {
  const [first = '', ...others] = text.split(',');
  const [name, format] = pairOf(first, text);
  if (format === 'transcript') {
    throw new UsageError('--also: a transcript has an option of its own, such as --transcript talk.vtt');
  }
  const fields = others.map((other): [string, unknown] => {
    const [field, value] = pairOf(other, text);
    if (field === 'name' || field === 'format') {
      throw new UsageError(`--also: "${text}" says ${field} twice; ${FORM}`);
    }
    return [field, readValue(value)];
  });
  return { name, format, ...Object.fromEntries(fields) };
}

function pairOf(part: string, text: string): [string, string] {
  const [, left, right] = /^([^=]+)=(.+)$/s.exec(part) ?? [];
  if (left === undefined || right === undefined) {
    throw new UsageError(`--also: "${text}" is not of the form ${FORM}`);
  }
  return [left, right];
}

function readValue(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}
