/** Times in words, for both pages. */

/** The time of day; with the date unless it is today. @param iso ISO 8601 */
export function shortTime(iso: string): string {
  const at = new Date(iso);
  const clock = { hour: '2-digit', minute: '2-digit' } as const;
  return at.toDateString() === new Date().toDateString()
    ? at.toLocaleTimeString([], clock)
    : at.toLocaleString([], { day: 'numeric', month: 'short', ...clock });
}

/** 75 → `1 minute 15 seconds`, for who listens to the page */
export function spoken(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const part = (count: number, unit: string): string =>
    count === 0 ? '' : `${count} ${unit}${count === 1 ? '' : 's'}`;
  const parts = [part(Math.floor(whole / 60), 'minute'), part(whole % 60, 'second')];
  return parts.filter(Boolean).join(' ') || '0 seconds';
}
