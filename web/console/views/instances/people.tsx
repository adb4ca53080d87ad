/** Whom an instance can send to, by name. */
import { useEffect, useState } from 'preact/hooks';
import { type Person, peopleOf } from '../../gateway.ts';
import { isAborted, sentence } from '../../session.ts';
import { Fault } from '../../ui.tsx';

const MOST = 50;

export function People({ instance }: { readonly instance: string }) {
  const [people, setPeople] = useState<readonly Person[]>();
  const [fault, setFault] = useState('');
  const [wanted, setWanted] = useState('');
  useEffect(() => {
    const ending = new AbortController();
    peopleOf(instance, { signal: ending.signal }).then(setPeople, (error: unknown) => {
      if (!isAborted(error)) setFault(sentence(error));
    });
    return () => ending.abort();
  }, [instance]);

  if (people === undefined) {
    return fault === '' ? <p class="soft">Loading…</p> : <Fault text={fault} />;
  }
  const found = people.filter((person) => matches(person, wanted));
  return (
    <div class="people">
      {people.length > 10 ? (
        <input
          type="search"
          aria-label={`Search people of ${instance}`}
          placeholder="Name or number"
          value={wanted}
          onInput={({ currentTarget }) => setWanted(currentTarget.value)}
        />
      ) : null}
      {people.length === 0 ? <p class="soft">No contacts yet. You can still send to a number.</p> : null}
      <ul aria-label={`People of ${instance}`}>
        {found.slice(0, MOST).map((person) => (
          <li key={person.jid}>
            <strong>{person.name}</strong>{' '}
            <span class="soft">{person.isGroup ? 'Group' : numberOf(person)}</span>
          </li>
        ))}
      </ul>
      {found.length > MOST ? <p class="hint">And {found.length - MOST} more. Search to find them.</p> : null}
    </div>
  );
}

const matches = ({ name, jid }: Person, wanted: string): boolean =>
  `${name} ${jid}`.toLowerCase().includes(wanted.trim().toLowerCase());

/** Without the part of the network. */
const numberOf = ({ jid }: Person): string => jid.replace(/@.*$/, '');
