/**
 * Spans of days, as the address and the filter name them: `2026-11-27`, in this browser's time
 * zone.
 */

export interface Days {
  /** First and last day; empty for no bound. */
  readonly from: string;
  readonly to: string;
}

function daysAgo(count: number): string {
  const day = new Date();
  day.setDate(day.getDate() - count);
  const [month, date] = [day.getMonth() + 1, day.getDate()].map((part) => String(part).padStart(2, '0'));
  return `${day.getFullYear()}-${month}-${date}`;
}

/** What the filter offers, by its words. */
export function spans(): ReadonlyMap<string, Days> {
  return new Map([
    ['Any day', { from: '', to: '' }],
    ['Today', { from: daysAgo(0), to: '' }],
    ['Yesterday', { from: daysAgo(1), to: daysAgo(1) }],
    ['Last 7 days', { from: daysAgo(6), to: '' }],
    ['Older than 3 days', { from: '', to: daysAgo(4) }],
  ]);
}

/** The first and the last moment of the days, ISO 8601. A day that is none is no bound. */
export function moments({ from, to }: Days): Days {
  return { from: moment(`${from}T00:00:00`), to: moment(`${to}T23:59:59.999`) };
}

function moment(text: string): string {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}
