/** Addresses of SegmentTemplate (ISO/IEC 23009-1 section 5.3.9.4.4). */
import { unusable } from '../presentation.ts';

interface TemplateValues {
  readonly id: string;
  readonly bandwidth: number;
  /** undefined in the address of the header. */
  readonly number: number | undefined;
  /** Ticks. */
  readonly time: bigint | undefined;
}

/** Of a template with the address that it makes, of which 20,000 may be made: the guard takes 2,048 of an address, and the template's own names count here as well. */
const MAX_CHARACTERS = 4_096;

/** `$Number%05d$` and its like; `$$` is a `$`. @throws {MediaFailure} for a name that is none, and what is longer than any address */
export function fillTemplate(template: string, { id, bandwidth, number, time }: TemplateValues): string {
  let left = MAX_CHARACTERS - template.length;
  const short = (text: string): string => {
    left -= text.length;
    if (left < 0) throw unusable('an address of the manifest is too long');
    return text;
  };
  short('');
  const values = new Map<string, string | number | bigint | undefined>([
    ['RepresentationID', id],
    ['Bandwidth', bandwidth],
    ['Number', number],
    ['Time', time],
  ]);
  return template.replaceAll(/\$([^$]*)\$/g, (_all, inner: string) => {
    if (inner === '') return '$';
    const [, name = '', width = '0'] = /^(\w+)(?:%0(\d{1,2})d)?$/.exec(inner) ?? [];
    const value = values.get(name);
    if (value === undefined) throw unusable('a template of the manifest cannot be read');
    return short(String(value).padStart(Number(width), '0'));
  });
}
