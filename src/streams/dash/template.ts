/** Addresses of SegmentTemplate (ISO/IEC 23009-1 section 5.3.9.4.4). */
import { unusable } from '../presentation.ts';

interface TemplateValues {
  readonly id: string;
  readonly bandwidth: number;
  /** undefined in the address of the header. */
  readonly number: number | undefined;
  readonly time: number | undefined;
}

/** `$Number%05d$` and its like; `$$` is a `$`. @throws {MediaFailure} for a name that is none */
export function fillTemplate(template: string, { id, bandwidth, number, time }: TemplateValues): string {
  const values: Readonly<Record<string, string | number | undefined>> = {
    RepresentationID: id,
    Bandwidth: bandwidth,
    Number: number,
    Time: time,
  };
  return template.replaceAll(/\$([^$]*)\$/g, (_all, inner: string) => {
    if (inner === '') return '$';
    const [, name = '', width = '0'] = /^(\w+)(?:%0(\d{1,2})d)?$/.exec(inner) ?? [];
    const value = values[name];
    if (value === undefined) throw unusable('a template of the manifest cannot be read');
    return String(value).padStart(Number(width), '0');
  });
}
