/** Asks for the gateway's own key, once a tab. */
import { useRef } from 'preact/hooks';
import { gatewayAddress, tryGatewayKey } from '../../gateway.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';

export function GatewayKeyForm({ reason, onKey }: { readonly reason: string; readonly onKey: () => void }) {
  const { busy, fault, run } = useWork();
  const field = useRef<HTMLInputElement>(null);

  async function submit(): Promise<void> {
    try {
      await tryGatewayKey(field.current?.value.trim() ?? '');
    } catch (error) {
      field.current?.select();
      throw error;
    }
    onKey();
  }

  return (
    <form
      class="card key-form"
      aria-labelledby="gateway-key-title"
      onSubmit={(event) => {
        event.preventDefault();
        void run(submit);
      }}
    >
      <h2 id="gateway-key-title">The gateway’s key</h2>
      <p class="soft">
        Instances are kept by the messaging gateway at <span class="address">{gatewayAddress()}</span>, which
        has a key of its own. It stays in this tab and is forgotten when you close it.
      </p>
      <Field
        id="gateway-key"
        label="Gateway key"
        hint={
          <>
            This prints it, on the machine that the service runs on: <code>soundpost keys gateway</code>
          </>
        }
      >
        {(attributes) => (
          <input {...attributes} type="password" autocomplete="off" spellcheck={false} required ref={field} />
        )}
      </Field>
      <Fault text={fault || reason} id="gateway-key-error" />
      <Button type="submit" class="primary" busy={busy}>
        Open the instances
      </Button>
    </form>
  );
}
