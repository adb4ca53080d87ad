/** Moments in text, and how they are moved. */

/** `2026-01-31T23:59:59.999Z`, milliseconds, or seconds; what belongs to a longer word, such as a hash, is none of them. */
const MOMENT = /(?<![0-9A-Za-z])(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\d{13}|\d{10})(?![0-9A-Za-z])/g;
const HOUR_MS = 60 * 60 * 1000;
/** The service keeps nothing longer than 30 days. */
const BEFORE_MS = 2 * HOUR_MS;
const AFTER_MS = 60 * 24 * HOUR_MS;

/** Characters of `2026-01-31T23:59:59`. */
const SECONDS = 19;

/** Moves every moment in a text that lies near the given one, by whole seconds; no text becomes longer or shorter. */
export function shiftTimes(text: string, nearMs: number, byMs: number): string {
  const isNear = (ms: number): boolean => ms > nearMs - BEFORE_MS && ms < nearMs + AFTER_MS;
  return text.replace(MOMENT, (moment) => {
    if (moment.includes('T')) {
      const ms = Date.parse(moment);
      const [, fraction = ''] = /(\..*)?Z$/.exec(moment) ?? [];
      return isNear(ms) ? `${new Date(ms + byMs).toISOString().slice(0, SECONDS)}${fraction}Z` : moment;
    }
    const unit = moment.length === 10 ? 1000 : 1;
    const ms = Number(moment) * unit;
    return isNear(ms) ? String(Math.floor((ms + byMs) / unit)) : moment;
  });
}
