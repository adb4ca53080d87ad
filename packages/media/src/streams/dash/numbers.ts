/** Numbers as a manifest writes them. */
import { unusable } from '../presentation.ts';

/** XML Schema's duration, `P1DT2H3M4.5S`; of years and months nobody knows the length. @returns null where there is none */
export function secondsOf(duration: string | undefined): number | null {
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] =
    /^P(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,12})?)S)?)?$/.exec(
      duration?.trim() ?? '',
    ) ?? ['', Number.NaN];
  const sum = ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
  return Number.isNaN(sum) ? null : sum;
}

/** A whole number, 0 or more. @throws {MediaFailure} when it is another thing */
export function wholeNumber(value: string | undefined, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (!/^\d{1,15}$/.test(value)) throw unusable('a number of the manifest cannot be read');
  return Number(value);
}

/** Times go up to 2^64 (`xs:unsignedLong`), which no double holds, and an address may be made of one. @throws as {@link wholeNumber} */
export function wholeTicks(value: string | undefined, otherwise: bigint): bigint {
  if (value === undefined) return otherwise;
  if (!/^\d{1,20}$/.test(value)) throw unusable('a number of the manifest cannot be read');
  return BigInt(value);
}

/** `100-199`, both counted; undefined where there is none. @throws {MediaFailure} when it is another thing */
export function byteSpan(value: string | undefined): { start: number; end: number } | undefined {
  if (value === undefined) return undefined;
  const [, start, last] = /^(\d{1,15})-(\d{1,15})$/.exec(value) ?? [];
  if (start === undefined || Number(last) < Number(start))
    throw unusable('a byte range of the manifest cannot be read');
  return { start: Number(start), end: Number(last) + 1 };
}
