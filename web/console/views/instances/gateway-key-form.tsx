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
      <h2 id="gateway-key-title">Gateway key</h2>
      <p class="soft">
        Instances belong to the messaging gateway at <span class="address">{gatewayAddress()}</span>, which
        has its own key. Enter it once: all tabs share it, and forget it when you sign out or close them.
      </p>
      <Field
        id="gateway-key"
        label="Gateway key"
        hint={
          <>
            To print it, run on the service’s machine: <code>soundpost keys gateway</code>
          </>
        }
      >
        {(attributes) => (
          <input {...attributes} type="password" autocomplete="off" spellcheck={false} required ref={field} />
        )}
      </Field>
      <Fault text={fault || reason} id="gateway-key-error" />
      <Button type="submit" class="primary" busy={busy}>
        Show instances
      </Button>
    </form>
  );
}
