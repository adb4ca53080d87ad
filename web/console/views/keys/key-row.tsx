/** One key, and what can be done with it. */
import type { KeyState, KeyWithSecret } from 'soundpost-contract/api-keys';
import { shortTime } from '../../../shared/time.ts';
import { announce } from '../../announcements.ts';
import { api, signOut } from '../../session.ts';
import { Button, confirmed, Facts, Fault, useWork } from '../../ui.tsx';
import type { ShownStatus } from '../../words.ts';

const words: Readonly<Record<KeyState['status'], string>> = {
  active: 'Active',
  paused: 'Paused',
  revoked: 'Revoked',
  unreadable: 'Unreadable',
};
const signs: Readonly<Record<KeyState['status'], ShownStatus>> = {
  active: 'completed',
  paused: 'processing',
  revoked: 'queued',
  unreadable: 'failed',
};

interface RowProps {
  readonly apiKey: KeyState;
  /** Whether it is the one that is signed in. */
  readonly isOwn: boolean;
  readonly onRotated: (key: KeyWithSecret) => void;
  readonly onRevoked: () => void;
}

export function KeyRow({ apiKey, isOwn, onRotated, onRevoked }: RowProps) {
  const { id, name, scopes, instances, status, createdAt } = apiKey;
  return (
    <li class="card key" data-key={id} data-status={status} aria-labelledby={`key-${id}`}>
      <div class="card-head">
        <h2 id={`key-${id}`}>
          {name} {isOwn ? <span class="soft own">(yours)</span> : null}
        </h2>
        <span class={`status status-${signs[status]}`}>{words[status]}</span>
      </div>
      <Facts
        rows={[
          ['Id', <code key="id">{id}</code>],
          ['Permissions', scopes.join(', ')],
          ['Instances', scopes.includes('voice') ? sendersOf(instances) : ''],
          ['Created', shortTime(createdAt)],
        ]}
      />
      {status === 'revoked' ? null : (
        <Actions apiKey={apiKey} isOwn={isOwn} onRotated={onRotated} onRevoked={onRevoked} />
      )}
    </li>
  );
}

const sendersOf = (instances: readonly string[]): string =>
  instances.includes('*') ? 'any instance' : instances.join(', ') || 'no instance';

function Actions({ apiKey: { id, name }, isOwn, onRotated, onRevoked }: RowProps) {
  const { busy, fault, run } = useWork();

  async function rotate(): Promise<void> {
    const sure = await confirmed({
      title: `Rotate ${name}?`,
      text: 'The key gets a new secret. The old one works for another 24 hours. The id and all jobs stay.',
      yes: 'Rotate key',
    });
    if (sure) await run(async () => onRotated(await api().keys.rotate(id)));
  }

  async function revoke(): Promise<void> {
    const sure = await confirmed({
      title: `Revoke ${name}?`,
      text: isOwn
        ? 'You are signed in with this key and will be signed out. This cannot be undone.'
        : 'It stops working at once; its jobs still finish. This cannot be undone.',
      yes: isOwn ? 'Revoke my own key' : 'Revoke key',
    });
    if (!sure) return;
    await run(async () => {
      await api().keys.revoke(id);
      announce(`${name} revoked`);
      if (isOwn) await signOut();
      else onRevoked();
    });
  }

  return (
    <>
      <div class="actions">
        {isOwn && (
          <Button
            class="small"
            icon="retry"
            aria-label={`Rotate ${name}`}
            busy={busy}
            onClick={() => void rotate()}
          >
            Rotate
          </Button>
        )}
        <Button class="small danger" aria-label={`Revoke ${name}`} busy={busy} onClick={() => void revoke()}>
          Revoke
        </Button>
      </div>
      <Fault text={fault} />
    </>
  );
}
