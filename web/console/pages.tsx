/** Turning the pages of a list. Where a page begins, and which one it is, stand in the address. */
import { changeQuery } from './route.ts';
import { Button } from './ui.tsx';

/** Rows of a page. */
export const PAGE = 50;
/** Another list begins at its first page, with nothing chosen. */
export const FIRST_PAGE = { after: '', page: '', chosen: '' };

interface PagesProps {
  /** Of the address. */
  readonly query: URLSearchParams;
  /** Where the next page begins; null for none. */
  readonly next: string | null;
}

export function Pages({ query, next }: PagesProps) {
  const number = Number(query.get('page') ?? 1) || 1;
  const isFirst = !query.has('after');
  if (isFirst && next === null) return null;
  return (
    <nav class="pages" aria-label="Pages">
      <Button disabled={isFirst} onClick={() => changeQuery(FIRST_PAGE, true)}>
        Newest
      </Button>
      <span class="soft">Page {number}</span>
      <Button
        disabled={next === null}
        onClick={() => changeQuery({ ...FIRST_PAGE, after: next ?? '', page: String(number + 1) }, true)}
      >
        Older
      </Button>
    </nav>
  );
}
