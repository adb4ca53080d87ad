/** Asks for the gateway's own key, unless another tab has it. */
import { useEffect, useRef } from 'preact/hooks';
import { askTabsForGatewayKey, gatewayAddress, tryGatewayKey } from '../../gateway.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';

export function GatewayKeyForm({ reason, onKey }: { readonly reason: string; readonly onKey: () => void }) {
  const { busy, fault, run } = useWork();
  const field = useRef<HTMLInputElement>(null);

  useEffect(() => askTabsForGatewayKey(onKey), []);

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
        Why a second key: instances belong to the messaging gateway at{' '}
        <span class="address">{gatewayAddress()}</span>, a service of its own that also works for other
        programs. Your API key does not open it. You are asked once; your tabs share the key, and forget it
        when you sign out or close them.
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
