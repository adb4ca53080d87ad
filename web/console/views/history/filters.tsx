/** Which jobs the history shows: by what is typed, by their state, and by the day. What is chosen stands in the address. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { changeQuery } from '../../route.ts';
import { Icon } from '../../ui.tsx';
import { statusWord } from '../../words.ts';
import { type Days, spans } from './days.ts';

const TYPING_MS = 250;
const BETWEEN = 'Between two days';
export const states = ['queued', 'processing', 'completed', 'failed'] as const;

/** Another filter begins at its first page, with nothing chosen. */
const FIRST_PAGE = { after: '', page: '', chosen: '' };

export function Filters({ query }: { readonly query: URLSearchParams }) {
  const status = query.get('status') ?? '';
  return (
    <search aria-label="Jobs">
      <form id="history-form" class="filters" onSubmit={(event) => event.preventDefault()}>
        <Search q={query.get('q') ?? ''} />
        <label class="visually-hidden" for="status-filter">
          State
        </label>
        <select
          id="status-filter"
          value={status}
          onChange={({ currentTarget }) => changeQuery({ status: currentTarget.value, ...FIRST_PAGE })}
        >
          <option value="">All states</option>
          {states.map((state) => (
            <option key={state} value={state}>
              {statusWord(state)}
            </option>
          ))}
        </select>
        <DaysFilter days={{ from: query.get('from') ?? '', to: query.get('to') ?? '' }} />
      </form>
    </search>
  );
}

function Search({ q }: { readonly q: string }) {
  const typing = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => () => clearTimeout(typing.current), []);
  useEffect(() => {
    // A link or the back button; what somebody types is ahead of the address.
    if (field.current !== null && field.current.value.trim() !== q) field.current.value = q;
  }, [q]);
  return (
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
        ref={field}
        onInput={({ currentTarget }) => {
          clearTimeout(typing.current);
          typing.current = setTimeout(() => {
            changeQuery({ q: currentTarget.value.trim(), ...FIRST_PAGE });
          }, TYPING_MS);
        }}
      />
    </div>
  );
}

function DaysFilter({ days }: { readonly days: Days }) {
  const [isBetween, setBetween] = useState(false);
  const offered = spans();
  const named = [...offered].find(([, { from, to }]) => from === days.from && to === days.to)?.[0];
  const shown = isBetween ? BETWEEN : (named ?? BETWEEN);
  const choose = (chosen: Partial<Days>): void => changeQuery({ ...days, ...chosen, ...FIRST_PAGE });
  return (
    <>
      <label class="visually-hidden" for="days-filter">
        Submitted
      </label>
      <select
        id="days-filter"
        value={shown}
        onChange={({ currentTarget }) => {
          const span = offered.get(currentTarget.value);
          setBetween(span === undefined);
          if (span !== undefined) choose(span);
        }}
      >
        {[...offered.keys(), BETWEEN].map((words) => (
          <option key={words}>{words}</option>
        ))}
      </select>
      {shown === BETWEEN ? (
        <div class="days">
          <label>
            From
            <input
              type="date"
              value={days.from}
              max={days.to}
              onChange={({ currentTarget }) => choose({ from: currentTarget.value })}
            />
          </label>
          <label>
            To
            <input
              type="date"
              value={days.to}
              min={days.from}
              onChange={({ currentTarget }) => choose({ to: currentTarget.value })}
            />
          </label>
        </div>
      ) : null}
    </>
  );
}
