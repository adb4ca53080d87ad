/** One instance: how it stands, and what can be done with it. */
import type { ComponentChildren } from 'preact';
import { announce } from '../../announcements.ts';
import { connectInstance, deleteInstance, logoutInstance } from '../../gateway.ts';
import { changeQuery } from '../../route.ts';
import { Button, confirmed, Fault, focusNext, useWork } from '../../ui.tsx';
import { InstanceWebhook } from './instance-webhook.tsx';
import { networks, stateSigns, stateWords } from './network-words.ts';
import { NotConnected } from './not-connected.tsx';
import { People } from './people.tsx';
import { Settings } from './settings.tsx';
import type { ShownInstance } from './use-instances.ts';

const parts = ['people', 'settings', 'webhook'] as const;
type Part = (typeof parts)[number];

/** Which part the address says is open. */
export const partOf = (query: URLSearchParams): Part | undefined =>
  parts.find((part) => part === query.get('part'));

interface CardProps {
  readonly instance: ShownInstance;
  readonly isPairing: boolean;
  /** The one that is open. */
  readonly part: Part | undefined;
  readonly onPair: () => void;
  /** Something about it has changed. */
  readonly onChange: () => void;
  /** What it begins with: its token, its pairing. */
  readonly children: ComponentChildren;
}

export function InstanceCard({ instance, isPairing, part, onPair, onChange, children }: CardProps) {
  const { name, status, transport, ownerJid, reason } = instance;
  const setPart = (opened: Part | undefined): void =>
    changeQuery({ of: opened === undefined ? '' : name, part: opened ?? '' });
  const { busy, fault, run } = useWork();
  const titleId = `instance-${name}`;

  function changing(work: () => Promise<unknown>): void {
    void run(async () => {
      try {
        await work();
      } finally {
        onChange();
      }
    });
  }

  function connect(): void {
    if (transport === 'whatsapp') onPair();
    else changing(() => connectInstance(name));
  }

  async function logout(): Promise<void> {
    const sure = await confirmed({
      title: `Log out ${name}?`,
      text:
        transport === 'whatsapp'
          ? 'It is removed from the phone’s linked devices and must be paired again. Its name, token and settings stay.'
          : 'It stays offline until you connect it again. Its name, token and settings stay.',
      yes: 'Log out',
    });
    if (sure) changing(() => logoutInstance(name));
  }

  async function remove(): Promise<void> {
    const sure = await confirmed({
      title: `Delete ${name}?`,
      text: 'Its messages, settings, webhook and token are deleted for good. Jobs that use it can no longer send.',
      yes: 'Delete instance',
    });
    if (!sure) return;
    changing(async () => {
      await deleteInstance(name);
      announce(`${name} is deleted`);
      focusNext('instances-title');
    });
  }

  return (
    <li class="card instance" aria-labelledby={titleId} data-instance={name} data-state={status}>
      <div class="card-head">
        <div class="instance-name">
          <h2 id={titleId} tabIndex={-1}>
            {name}
          </h2>
          <p class="soft">{[networks[transport].name, accountOf(ownerJid)].filter(Boolean).join(' · ')}</p>
        </div>
        <span class={`status status-${stateSigns[status]}`}>{stateWords[status]}</span>
      </div>
      {status === 'open' || reason === undefined || isPairing ? null : <NotConnected reason={reason} />}
      <div class="actions">
        {status === 'close' && !isPairing ? (
          <Button class="small primary" busy={busy} onClick={connect}>
            {transport === 'whatsapp' && ownerJid === null ? 'Pair phone' : 'Connect'}
          </Button>
        ) : null}
        {status === 'connecting' && transport === 'whatsapp' && !isPairing && ownerJid === null ? (
          <Button class="small primary" onClick={onPair}>
            Pair phone
          </Button>
        ) : null}
        <PartButton part="people" name={name} shown={part} onPart={setPart}>
          People
        </PartButton>
        <PartButton part="settings" name={name} shown={part} onPart={setPart}>
          Settings
        </PartButton>
        <PartButton part="webhook" name={name} shown={part} onPart={setPart}>
          Webhook
        </PartButton>
        {status === 'close' ? null : (
          <Button class="small" aria-label={`Log out ${name}`} busy={busy} onClick={() => void logout()}>
            Log out
          </Button>
        )}
        <Button class="small danger" aria-label={`Delete ${name}`} busy={busy} onClick={() => void remove()}>
          Delete
        </Button>
      </div>
      <Fault text={fault} />
      {children}
      {part === undefined ? null : (
        <div class="instance-part" id={`${part}-of-${name}`}>
          {/* Whom it knows changes when it connects. */}
          {part === 'people' ? <People key={status} instance={name} /> : null}
          {part === 'settings' ? <Settings instance={name} /> : null}
          {part === 'webhook' ? <InstanceWebhook instance={name} /> : null}
        </div>
      )}
    </li>
  );
}

interface PartButtonProps {
  readonly part: Part;
  /** Of the instance. */
  readonly name: string;
  readonly shown: Part | undefined;
  readonly onPart: (part: Part | undefined) => void;
  readonly children: ComponentChildren;
}

function PartButton({ part, name, shown, onPart, children }: PartButtonProps) {
  const isShown = shown === part;
  return (
    <Button
      class="small"
      aria-expanded={isShown}
      aria-controls={isShown ? `${part}-of-${name}` : undefined}
      onClick={() => onPart(isShown ? undefined : part)}
    >
      {children}
      <span class="visually-hidden"> of {name}</span>
    </Button>
  );
}

/** `+4915112345678`, or the address. */
function accountOf(jid: string | null): string {
  if (jid === null) return '';
  return jid.endsWith('@s.whatsapp.net') ? `+${jid.replace(/[:@].*$/, '')}` : jid;
}
