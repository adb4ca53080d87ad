/**
 * Which jobs the history shows: by what is typed, by their state, and by the day. What is chosen
 * stands in the address.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { FIRST_PAGE } from '../../pages.tsx';
import { changeQuery } from '../../route.ts';
import { Button, Icon } from '../../ui.tsx';
import { statusWord } from '../../words.ts';
import { type Days, spans } from './days.ts';

const TYPING_MS = 250;
export const states = ['queued', 'processing', 'completed', 'failed'] as const;

export function Filters({ query }: { readonly query: URLSearchParams }) {
  const status = query.get('status') ?? '';
  return (
    <search class="filters" aria-label="Jobs">
      <Search q={query.get('q') ?? ''} />
      <Choice
        legend="State"
        options={new Map([['', 'All'], ...states.map((state) => [state, statusWord(state)] as const)])}
        value={status}
        onChoose={(state) => changeQuery({ status: state, ...FIRST_PAGE }, true)}
      />
      <DaysFilter days={{ from: query.get('from') ?? '', to: query.get('to') ?? '' }} />
    </search>
  );
}

interface ChoiceProps {
  readonly legend: string;
  /** Words by value. */
  readonly options: ReadonlyMap<string, string>;
  readonly value: string;
  readonly onChoose: (value: string) => void;
}

function Choice({ legend, options, value, onChoose }: ChoiceProps) {
  return (
    <fieldset class="filter-buttons">
      <legend class="visually-hidden">{legend}</legend>
      {[...options].map(([one, word]) => (
        <Button key={one} class="small" aria-pressed={one === value} onClick={() => onChoose(one)}>
          {word}
        </Button>
      ))}
    </fieldset>
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
        Search by name, URL, host or id
      </label>
      <input
        id="search"
        type="search"
        maxLength={200}
        placeholder="Name, host or id (Ctrl+K)"
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

const OTHER = 'Other days';

function DaysFilter({ days }: { readonly days: Days }) {
  const [isOpen, setOpen] = useState(false);
  const offered = spans();
  const named = [...offered].find(([, { from, to }]) => from === days.from && to === days.to)?.[0];
  const shown = isOpen ? OTHER : (named ?? OTHER);
  const choose = (chosen: Partial<Days>): void => changeQuery({ ...days, ...chosen, ...FIRST_PAGE }, true);
  return (
    <>
      <Choice
        legend="Submitted"
        options={new Map([...offered.keys(), OTHER].map((word) => [word, word]))}
        value={shown}
        onChoose={(word) => {
          const span = offered.get(word);
          setOpen(span === undefined);
          if (span !== undefined) choose(span);
        }}
      />
      {shown === OTHER ? (
        <div class="days">
          {(['from', 'to'] as const).map((end) => (
            <label key={end}>
              {end === 'from' ? 'From' : 'To'}
              <input
                type="date"
                value={days[end]}
                {...(end === 'from' ? { max: days.to } : { min: days.from })}
                onChange={({ currentTarget }) => choose({ [end]: currentTarget.value })}
              />
            </label>
          ))}
        </div>
      ) : null}
    </>
  );
}
