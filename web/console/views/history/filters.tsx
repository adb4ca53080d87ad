/** Which jobs the history shows: by what is typed, and by their state. */
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../../ui.tsx';
import type { JobQuery } from '../../use-jobs.ts';
import { statusWord } from '../../words.ts';

const TYPING_MS = 250;
const states = ['queued', 'processing', 'completed', 'failed'] as const;

interface FiltersProps {
  readonly query: JobQuery;
  /** What is typed is told a little later: by then the state may be another one, and stays. */
  readonly onQuery: (change: Partial<JobQuery>) => void;
}

export function Filters({ query, onQuery }: FiltersProps) {
  const typing = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const search = useRef<HTMLInputElement>(null);
  const apply = (): void => onQuery({ q: search.current?.value.trim() ?? '' });
  useEffect(() => () => clearTimeout(typing.current), []);
  return (
    <search aria-label="Jobs">
      <form
        id="history-form"
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        <div class="search-field">
          <Icon name="search" />
          <label class="visually-hidden" for="search">
            Search by name, address or id
          </label>
          <input
            id="search"
            type="search"
            maxLength={200}
            placeholder="Name, address or id"
            autocomplete="off"
            ref={search}
            onInput={() => {
              clearTimeout(typing.current);
              typing.current = setTimeout(apply, TYPING_MS);
            }}
          />
        </div>
        <label class="visually-hidden" for="status-filter">
          State
        </label>
        <select
          id="status-filter"
          value={query.status}
          onChange={({ currentTarget }) => onQuery({ status: currentTarget.value as JobQuery['status'] })}
        >
          <option value="">All states</option>
          {states.map((state) => (
            <option key={state} value={state}>
              {statusWord(state)}
            </option>
          ))}
        </select>
      </form>
    </search>
  );
}
