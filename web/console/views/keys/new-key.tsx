/** Making a key: what it is for, what it may do, and as which instances it may send. */
import { useState } from 'preact/hooks';
import { type KeyState, type KeyWithSecret, type Scope, scopes } from 'soundpost-contract/api-keys';
import { api } from '../../session.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';
import { scopeWords } from './scope-words.ts';

interface NewKeyProps {
  /** The key that is signed in: it can give only what it has. */
  readonly own: KeyState | undefined;
  readonly onMade: (key: KeyWithSecret) => void;
  readonly onCancel: () => void;
}

const usual: readonly Scope[] = ['extract', 'read', 'download'];

export function NewKeyForm({ own, onMade, onCancel }: NewKeyProps) {
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState<readonly Scope[]>(usual);
  const [instances, setInstances] = useState('');
  const { busy, fault, run } = useWork();

  async function create(): Promise<void> {
    if (chosen.length === 0) throw new Error('Choose at least one permission.');
    const named = chosen.includes('voice') ? listed(instances) : [];
    onMade(await api().keys.create({ name: name.trim(), scopes: [...chosen], instances: named }));
  }

  return (
    <form
      id="new-key"
      class="card"
      aria-labelledby="new-key-title"
      onSubmit={(event) => {
        event.preventDefault();
        void run(create);
      }}
    >
      <h2 id="new-key-title">New key</h2>
      <Field label="Name" id="new-key-name" hint="What it is for, such as the program that uses it.">
        {(attributes) => (
          <input
            {...attributes}
            required
            maxLength={100}
            autocomplete="off"
            placeholder="newsroom"
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        )}
      </Field>
      <fieldset>
        <legend>Permissions</legend>
        <div class="pick-list scopes">
          {scopes.map((scope) => (
            <ScopeChoice
              key={scope}
              scope={scope}
              isChosen={chosen.includes(scope)}
              canBeGiven={own?.scopes.includes(scope) ?? true}
              onChoose={(isChosen) =>
                setChosen(scopes.filter((one) => (one === scope ? isChosen : chosen.includes(one))))
              }
            />
          ))}
        </div>
      </fieldset>
      {chosen.includes('voice') ? (
        <Field
          label="Instances"
          hint="Instances it can send from, separated by commas, or * for any. Leave empty for none."
        >
          {(attributes) => (
            <input
              {...attributes}
              autocomplete="off"
              spellcheck={false}
              placeholder="main, newsroom"
              value={instances}
              onInput={({ currentTarget }) => setInstances(currentTarget.value)}
            />
          )}
        </Field>
      ) : null}
      <Fault text={fault} id="new-key-error" />
      <div class="card-foot">
        <Button class="plain" onClick={onCancel}>
          Cancel
        </Button>
        <Button type="submit" class="primary" busy={busy}>
          Create key
        </Button>
      </div>
    </form>
  );
}

interface ScopeProps {
  readonly scope: Scope;
  readonly isChosen: boolean;
  readonly canBeGiven: boolean;
  readonly onChoose: (isChosen: boolean) => void;
}

function ScopeChoice({ scope, isChosen, canBeGiven, onChoose }: ScopeProps) {
  return (
    <label class="pick">
      <input
        type="checkbox"
        name="scope"
        value={scope}
        checked={isChosen && canBeGiven}
        disabled={!canBeGiven}
        onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
      />
      <span>
        <strong>{scope}</strong>
        <span class="soft">{canBeGiven ? scopeWords[scope] : 'Your key does not have this permission.'}</span>
      </span>
    </label>
  );
}

const listed = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
