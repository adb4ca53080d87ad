/** The gateway's instances: accounts on chat networks that voice messages are sent as. */
import { useState } from 'preact/hooks';
import { forgetGateway, gatewayAddress, gatewayKey } from '../../gateway.ts';
import { SecretValue } from '../../secret-value.tsx';
import { Button, Fault, focusNext, Icon, ViewHead } from '../../ui.tsx';
import { GatewayKeyForm } from './gateway-key-form.tsx';
import { InstanceCard } from './instance-card.tsx';
import { type MadeInstance, NewInstanceForm } from './new-instance.tsx';
import { useInstances } from './use-instances.ts';

export function Instances() {
  const [hasKey, setHasKey] = useState(gatewayKey() !== undefined);
  const [reason, setReason] = useState('');

  function refused(told: string): void {
    forgetGateway();
    setReason(told);
    setHasKey(false);
  }

  function accepted(): void {
    setHasKey(true);
    focusNext('instances-title');
  }

  return (
    <section id="view-instances" class="view" aria-labelledby="instances-title">
      <ViewHead id="instances" title="Instances">
        <p class="soft">Accounts on chat networks that voice messages are sent as.</p>
      </ViewHead>
      <Content hasKey={hasKey} reason={reason} onKey={accepted} onRefused={refused} />
    </section>
  );
}

interface ContentProps {
  readonly hasKey: boolean;
  readonly reason: string;
  readonly onKey: () => void;
  readonly onRefused: (reason: string) => void;
}

function Content({ hasKey, reason, onKey, onRefused }: ContentProps) {
  if (gatewayAddress() === undefined) {
    return (
      <p class="card">
        This service sends through another gateway, or through one whose address it does not know
        (GATEWAY_PUBLIC_URL). Its instances are managed there.
      </p>
    );
  }
  return hasKey ? <InstanceList onRefused={onRefused} /> : <GatewayKeyForm reason={reason} onKey={onKey} />;
}

function InstanceList({ onRefused }: { readonly onRefused: (reason: string) => void }) {
  const { instances, fault, refresh } = useInstances(onRefused);
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<MadeInstance>();
  const [pairing, setPairing] = useState<string>();

  function taken(one: MadeInstance): void {
    setMade(one);
    setMaking(false);
    // The panel for pairing takes the focus itself.
    if (one.transport === 'whatsapp') setPairing(one.name);
    else focusNext('token-title');
    refresh();
  }

  function open(): void {
    setMaking(true);
    focusNext('new-instance-name');
  }

  function cancel(): void {
    setMaking(false);
    focusNext('new-instance-open');
  }

  function kept(): void {
    setMade(undefined);
    focusNext('new-instance-open');
  }

  return (
    <>
      {isMaking ? (
        <NewInstanceForm onMade={taken} onCancel={cancel} />
      ) : (
        <Button id="new-instance-open" class="primary head-action" icon="new" onClick={open}>
          New instance
        </Button>
      )}
      {made === undefined ? null : <Token made={made} onKept={kept} />}
      <Fault text={fault} id="instances-error" />
      {instances?.length === 0 && !isMaking ? <Empty /> : null}
      <ul id="instances" class="rows" aria-label="Instances">
        {instances?.map((instance) => (
          <InstanceCard
            key={instance.name}
            instance={instance}
            isPairing={pairing === instance.name}
            onPairing={(isPairing) => {
              setPairing(isPairing ? instance.name : undefined);
              if (!isPairing) focusNext(`instance-${instance.name}`);
              refresh();
            }}
            onChange={refresh}
          />
        ))}
      </ul>
    </>
  );
}

function Token({ made, onKept }: { readonly made: MadeInstance; readonly onKept: () => void }) {
  return (
    <section class="card secret-card" aria-labelledby="token-title">
      <h2 id="token-title" tabIndex={-1}>
        {made.name} is made
      </h2>
      <p class="soft">
        This is its token, for programs that call the gateway as this instance alone. It is not shown again;
        the console does not need it.
      </p>
      <SecretValue label="Token" value={made.token} isShown />
      <div class="card-foot">
        <Button class="small" onClick={onKept}>
          I have it
        </Button>
      </div>
    </section>
  );
}

function Empty() {
  return (
    <div class="card empty">
      <Icon name="instances" />
      <h2>No instances</h2>
      <p class="soft">Make one, for instance on WhatsApp, to send results as voice messages.</p>
    </div>
  );
}
