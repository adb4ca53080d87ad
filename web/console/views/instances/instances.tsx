/** The gateway's instances: accounts on chat networks that voice messages are sent as. */
import { useState } from 'preact/hooks';
import { forgetGateway, type GatewayInstance, gatewayAddress, gatewayKey } from '../../gateway.ts';
import { changeQuery } from '../../route.ts';
import { ShownOnce } from '../../secret-value.tsx';
import { Button, Fault, focusNext, Icon, ViewHead } from '../../ui.tsx';
import { GatewayKeyForm } from './gateway-key-form.tsx';
import { InstanceCard, partOf } from './instance-card.tsx';
import { NewInstanceForm } from './new-instance.tsx';
import { PairingPanel } from './pairing.tsx';
import { useInstances } from './use-instances.ts';

export function Instances({ query }: { readonly query: URLSearchParams }) {
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
        <p class="soft">Chat accounts that send voice messages.</p>
      </ViewHead>
      <Content query={query} hasKey={hasKey} reason={reason} onKey={accepted} onRefused={refused} />
    </section>
  );
}

interface ContentProps {
  readonly query: URLSearchParams;
  readonly hasKey: boolean;
  readonly reason: string;
  readonly onKey: () => void;
  readonly onRefused: (reason: string) => void;
}

function Content({ query, hasKey, reason, onKey, onRefused }: ContentProps) {
  if (gatewayAddress() === undefined) {
    return (
      <p class="card">
        This service uses another gateway, or one whose URL it does not know (GATEWAY_PUBLIC_URL). Manage its
        instances there.
      </p>
    );
  }
  return hasKey ? (
    <InstanceList query={query} onRefused={onRefused} />
  ) : (
    <GatewayKeyForm reason={reason} onKey={onKey} />
  );
}

interface MadeInstance {
  readonly name: string;
  /** Shown this once. */
  readonly token: string;
}

interface ListProps {
  /** Which instance is paired or has a part open. */
  readonly query: URLSearchParams;
  readonly onRefused: (reason: string) => void;
}

function InstanceList({ query, onRefused }: ListProps) {
  const { instances, fault, refresh, add } = useInstances(onRefused);
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<MadeInstance>();
  const pairing = query.get('pairing') ?? undefined;
  const setPairing = (name = ''): void => changeQuery({ pairing: name });

  /** Its token takes the focus; the pairing stands beside it. */
  function taken(instance: GatewayInstance, token: string): void {
    setMade({ name: instance.name, token });
    setMaking(false);
    if (instance.transport === 'whatsapp') setPairing(instance.name);
    add(instance);
  }

  function open(): void {
    setMaking(true);
    focusNext('new-instance-name');
  }

  function cancel(): void {
    setMaking(false);
    focusNext('new-instance-open');
  }

  function kept({ name }: GatewayInstance): void {
    setMade(undefined);
    focusNext(`${pairing === name ? 'pairing' : 'instance'}-${name}`);
  }

  function pair({ name }: GatewayInstance, isPairing: boolean): void {
    setPairing(isPairing ? name : undefined);
    focusNext(`${isPairing ? 'pairing' : 'instance'}-${name}`);
    refresh();
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
      <Fault text={fault} id="instances-error" />
      {instances?.length === 0 && !isMaking ? <Empty /> : null}
      <ul id="instances" class="rows" aria-label="Instances">
        {instances?.map((instance) => (
          <InstanceCard
            key={instance.name}
            instance={instance}
            isPairing={pairing === instance.name}
            part={query.get('of') === instance.name ? partOf(query) : undefined}
            onPair={() => pair(instance, true)}
            onChange={refresh}
          >
            <div class="cards">
              {made?.name === instance.name ? <Token made={made} onKept={() => kept(instance)} /> : null}
              {pairing === instance.name ? (
                <PairingPanel
                  instance={instance.name}
                  onConnected={refresh}
                  onClose={() => pair(instance, false)}
                />
              ) : null}
            </div>
          </InstanceCard>
        ))}
      </ul>
    </>
  );
}

function Token({ made, onKept }: { readonly made: MadeInstance; readonly onKept: () => void }) {
  return (
    <ShownOnce title={`${made.name} created`} label="Token" value={made.token} onKept={onKept} isInCard>
      Programs use this token to call the gateway as this instance only. Copy it now: you cannot see it again.
      The console does not need it.
    </ShownOnce>
  );
}

function Empty() {
  return (
    <div class="card empty">
      <Icon name="instances" />
      <h2>No instances</h2>
      <p class="soft">Create one, for example on WhatsApp, to send results as voice messages.</p>
    </div>
  );
}
