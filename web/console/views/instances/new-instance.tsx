/** Making an instance: its name, its network, and what that network needs. */
import { useRef, useState } from 'preact/hooks';
import type { TransportKind } from 'soundpost-contract/gateway-instances';
import { createInstance, type GatewayInstance, type NewInstance } from '../../gateway.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';
import { networks } from './network-words.ts';

const order: readonly TransportKind[] = ['whatsapp', 'whatsapp-cloud', 'telegram', 'xmpp', 'loopback'];

export function NewInstanceForm({
  onMade,
  onCancel,
}: {
  /** @param token shown this once */
  readonly onMade: (instance: GatewayInstance, token: string) => void;
  readonly onCancel: () => void;
}) {
  const [transport, setTransport] = useState<TransportKind>('whatsapp');
  const form = useRef<HTMLFormElement>(null);
  const { busy, fault, run } = useWork();

  async function create(): Promise<void> {
    if (form.current === null) return;
    const { instance, token } = await createInstance(asked(new FormData(form.current), transport));
    onMade(instance, token);
  }

  return (
    <form
      id="new-instance"
      class="card"
      aria-labelledby="new-instance-title"
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        void run(create);
      }}
    >
      <h2 id="new-instance-title">New instance</h2>
      <Field
        label="Name"
        id="new-instance-name"
        hint="Letters, digits, - and _. Jobs and keys use this name."
      >
        {(attributes) => (
          <input
            {...attributes}
            name="name"
            required
            pattern="[A-Za-z0-9_\-]{1,64}"
            maxLength={64}
            autocomplete="off"
            spellcheck={false}
            placeholder="newsroom"
          />
        )}
      </Field>
      <fieldset>
        <legend>Network</legend>
        <div class="pick-list">
          {order.map((kind) => (
            <label key={kind} class="pick">
              <input
                type="radio"
                name="transport"
                value={kind}
                checked={transport === kind}
                onChange={() => setTransport(kind)}
              />
              <span>
                <strong>{networks[kind].name}</strong>
                <span class="soft">{networks[kind].about}</span>
              </span>
            </label>
          ))}
        </div>
      </fieldset>
      {fieldsOf[transport]?.()}
      <Fault text={fault} id="new-instance-error" />
      <div class="card-foot">
        <Button class="plain" onClick={onCancel}>
          Cancel
        </Button>
        <Button type="submit" class="primary" busy={busy}>
          {transport === 'whatsapp' ? 'Create and pair' : 'Create instance'}
        </Button>
      </div>
    </form>
  );
}

/** What a network needs to know of an account; nothing where there is no entry. */
const fieldsOf: Partial<Record<TransportKind, () => preact.JSX.Element>> = {
  xmpp: XmppFields,
  telegram: () => <SecretField label="Bot token" name="botToken" hint="From @BotFather." />,
  'whatsapp-cloud': CloudFields,
};

const KEPT_ENCRYPTED = 'Stored encrypted and never shown again.';

function SecretField(field: { readonly label: string; readonly name: string; readonly hint?: string }) {
  return (
    <Field label={field.label} hint={[field.hint, KEPT_ENCRYPTED].filter(Boolean).join(' ')}>
      {(attributes) => (
        <input {...attributes} name={field.name} type="password" required autocomplete="new-password" />
      )}
    </Field>
  );
}

function CloudFields() {
  return (
    <>
      <div class="pair">
        <Field label="Phone number ID" hint="The number’s ID, not the number itself.">
          {(attributes) => (
            <input
              {...attributes}
              name="phoneNumberId"
              required
              inputMode="numeric"
              pattern="[0-9]{1,32}"
              autocomplete="off"
            />
          )}
        </Field>
        <SecretField label="Access token" name="accessToken" hint="A permanent token of a system user." />
      </div>
      <div class="pair">
        <SecretField label="App secret" name="appSecret" hint="Verifies webhooks." />
        <SecretField
          label="Verify token"
          name="verifyToken"
          hint="Choose at least 8 characters and enter the same at Meta."
        />
      </div>
    </>
  );
}

function XmppFields() {
  return (
    <>
      <div class="pair">
        <Field label="Account">
          {(attributes) => (
            <input
              {...attributes}
              name="jid"
              required
              autocomplete="off"
              spellcheck={false}
              placeholder="soundpost@chat.example"
            />
          )}
        </Field>
        <SecretField label="Password" name="password" />
      </div>
      <details class="more">
        <summary>Server settings</summary>
        <div class="more-body">
          <Field label="Server" hint="Leave empty to look it up in DNS.">
            {(attributes) => (
              <input
                {...attributes}
                name="service"
                spellcheck={false}
                placeholder="xmpps://chat.example:5223"
              />
            )}
          </Field>
          <Field label="Upload service" hint="Leave empty to detect it.">
            {(attributes) => (
              <input
                {...attributes}
                name="uploadService"
                spellcheck={false}
                placeholder="upload.chat.example"
              />
            )}
          </Field>
          <Field label="Chat room service" hint="Leave empty to detect it.">
            {(attributes) => (
              <input {...attributes} name="mucService" spellcheck={false} placeholder="rooms.chat.example" />
            )}
          </Field>
        </div>
      </details>
    </>
  );
}

function asked(form: FormData, transport: TransportKind): NewInstance {
  const text = (name: string): string => String(form.get(name) ?? '').trim();
  return {
    instanceName: text('name'),
    transport,
    ...connectionIn(form, transport),
  };
}

/** Every field but the name and the network belongs to the account. An empty one is left out, a password is not trimmed. */
function connectionIn(form: FormData, transport: TransportKind): Pick<NewInstance, 'connection'> {
  if (fieldsOf[transport] === undefined) return {};
  const given = [...form.entries()]
    .filter(([name]) => name !== 'name' && name !== 'transport')
    .map(([name, value]) => [name, name === 'password' ? String(value) : String(value).trim()] as const)
    .filter(([, value]) => value !== '');
  return { connection: Object.fromEntries(given) as NewInstance['connection'] & object };
}
