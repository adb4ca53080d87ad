/** API keys that may do no more than the one signed in, which has the scope `admin`. */
import { useEffect, useState } from 'preact/hooks';
import { SoundpostError } from 'soundpost-client/error';
import { type KeyState, type KeyWithSecret, scopes } from 'soundpost-contract/api-keys';
import { changeQuery } from '../../route.ts';
import { ShownOnce } from '../../secret-value.tsx';
import { api, isAborted, keyId, sentence } from '../../session.ts';
import { Button, Fault, focusNext, ViewHead } from '../../ui.tsx';
import { KeyRow } from './key-row.tsx';
import { NewKeyForm } from './new-key.tsx';

export function Keys({ query }: { readonly query: URLSearchParams }) {
  const { keys, fault, isForbidden, refresh } = useKeys();
  return (
    <section id="view-keys" class="view" aria-labelledby="keys-title">
      <ViewHead id="keys" title="Keys">
        <p class="soft">Who can use this service, and for what.</p>
      </ViewHead>
      <Fault text={fault} id="keys-error" />
      {isForbidden ? <NoAdmin /> : null}
      {keys === undefined ? null : <KeyList keys={keys} query={query} onChange={refresh} />}
    </section>
  );
}

function useKeys() {
  const [keys, setKeys] = useState<readonly KeyState[]>();
  const [fault, setFault] = useState('');
  const [isForbidden, setForbidden] = useState(false);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    listKeys(ending.signal).then(
      (listed) => {
        setKeys(listed);
        setFault('');
      },
      (error: unknown) => {
        if (isAborted(error)) return;
        if (error instanceof SoundpostError && error.httpStatus === 403) setForbidden(true);
        else setFault(sentence(error));
      },
    );
    return () => ending.abort();
  }, [turn]);
  return { keys, fault, isForbidden, refresh: () => setTurn((turns) => turns + 1) };
}

async function listKeys(signal: AbortSignal): Promise<KeyState[]> {
  const all: KeyState[] = [];
  let cursor: string | null = null;
  do {
    const page = await api().keys.list({ signal, ...(cursor === null ? {} : { cursor }) });
    all.push(...page.keys);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return all;
}

function NoAdmin() {
  return (
    <p id="keys-no-admin" class="card">
      <span>
        This key cannot manage keys: it lacks the scope <code>admin</code>. To create a key that can, run on
        the service’s machine:
      </span>
      <code class="shell-command">
        soundpost keys create --name admin --scopes {scopes.join(',')} --instances '*'
      </code>
    </p>
  );
}

interface Shown {
  readonly key: KeyWithSecret;
  readonly isRotated: boolean;
}

interface KeyListProps {
  readonly keys: readonly KeyState[];
  readonly query: URLSearchParams;
  readonly onChange: () => void;
}

function KeyList({ keys, query, onChange }: KeyListProps) {
  const [isMaking, setMaking] = useState(false);
  const [shown, setShown] = useState<Shown>();
  const showsRevoked = query.has('revoked');
  const own = keys.find(({ id }) => id === keyId());
  const good = keys.filter(({ status }) => status !== 'revoked');
  const revoked = keys.filter(({ status }) => status === 'revoked');

  function made(key: KeyWithSecret): void {
    setShown({ key, isRotated: false });
    setMaking(false);
    onChange();
  }

  function rotated(key: KeyWithSecret): void {
    setShown({ key, isRotated: true });
    onChange();
  }

  function open(): void {
    setMaking(true);
    focusNext('new-key-name');
  }

  function cancel(): void {
    setMaking(false);
    focusNext('new-key-open');
  }

  function kept(): void {
    setShown(undefined);
    focusNext('new-key-open');
  }

  function revokedOne(): void {
    onChange();
    focusNext('keys-title');
  }

  const rows = (some: readonly KeyState[]) =>
    some.map((key) => (
      <KeyRow
        key={key.id}
        apiKey={key}
        isOwn={key.id === own?.id}
        onRotated={rotated}
        onRevoked={revokedOne}
      />
    ));
  return (
    <>
      {isMaking ? (
        <NewKeyForm own={own} onMade={made} onCancel={cancel} />
      ) : (
        <Button id="new-key-open" class="primary head-action" icon="new" onClick={open}>
          New key
        </Button>
      )}
      {shown === undefined ? null : (
        <ShownOnce
          title={`${shown.key.name} ${shown.isRotated ? 'rotated' : 'created'}`}
          label="Key"
          value={shown.key.key}
          onKept={kept}
        >
          Copy the key now: you cannot see it again.
          {shown.isRotated ? ' The old secret works for another 24 hours. You stay signed in.' : ''}
        </ShownOnce>
      )}
      <ul id="keys" class="rows" aria-label="Keys">
        {rows(good)}
      </ul>
      {revoked.length === 0 ? null : (
        <Button
          class="small head-action"
          aria-expanded={showsRevoked}
          onClick={() => changeQuery({ revoked: showsRevoked ? '' : 'shown' })}
        >
          {showsRevoked ? 'Hide' : 'Show'} {revoked.length} revoked
        </Button>
      )}
      {showsRevoked ? (
        <ul class="rows" aria-label="Revoked keys">
          {rows(revoked)}
        </ul>
      ) : null}
    </>
  );
}
