/**
 * The names of files whose upload has not ended, for who reloads the page in the middle of it, or
 * closes the tab and comes back.
 */
const UNFINISHED = 'soundpost.console.upload';
const MOST_NAMED = 3;

export function keepUnfinished(names: readonly string[]): void {
  if (names.length === 0) sessionStorage.removeItem(UNFINISHED);
  else sessionStorage.setItem(UNFINISHED, JSON.stringify(names));
  localStorage.removeItem(UNFINISHED);
}

// Not before: in another tab an upload that goes on would look as if it had been interrupted.
addEventListener('pagehide', () => {
  const names = sessionStorage.getItem(UNFINISHED);
  if (names !== null) localStorage.setItem(UNFINISHED, names);
});

/** What to do about them; empty where there are none. */
export function leftOverNote(): string {
  const [first, ...others] = unfinished();
  if (first === undefined) return '';
  if (others.length === 0) {
    return `The upload of ${first} was interrupted. Choose the same file again to resume it.`;
  }
  const names = [first, ...others];
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : '';
  return `The uploads of ${names.slice(0, MOST_NAMED).join(', ')}${more} were interrupted. Choose the same files again to resume them.`;
}

function unfinished(): string[] {
  try {
    const names: unknown = JSON.parse(
      sessionStorage.getItem(UNFINISHED) ?? localStorage.getItem(UNFINISHED) ?? '[]',
    );
    return Array.isArray(names) ? names.map(String) : [];
  } catch {
    return [];
  }
}
