/** How an instance behaves: seven settings, each kept as soon as it is changed. */
import { useEffect, useState } from 'preact/hooks';
import type { InstanceSettings } from 'soundpost-contract/gateway-instances';
import { announce } from '../../announcements.ts';
import { changeSettings, settingsOf } from '../../gateway.ts';
import { isAborted, sentence } from '../../session.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';

type SwitchName = Exclude<keyof InstanceSettings, 'msgCall'>;

const switches: readonly { readonly name: SwitchName; readonly label: string; readonly about: string }[] = [
  { name: 'readStatus', label: 'See when messages are read', about: 'If off, messages stay “delivered”.' },
  {
    name: 'readMessages',
    label: 'Mark incoming messages as read',
    about: 'At once; the sender sees it.',
  },
  { name: 'alwaysOnline', label: 'Always show as online', about: 'Even while inactive.' },
  { name: 'groupsIgnore', label: 'Ignore groups', about: 'Drop messages in groups.' },
  {
    name: 'syncFullHistory',
    label: 'Download full history',
    about: 'At the next pairing.',
  },
  { name: 'rejectCall', label: 'Reject calls', about: 'Calls cannot be answered here.' },
];

export function Settings({ instance }: { readonly instance: string }) {
  const [settings, setSettings] = useState<InstanceSettings>();
  const [away, setAway] = useState('');
  const { busy, fault, run } = useWork();
  useEffect(() => {
    const ending = new AbortController();
    settingsOf(instance, { signal: ending.signal }).then(setSettings, (error: unknown) => {
      if (!isAborted(error)) setAway(sentence(error));
    });
    return () => ending.abort();
  }, [instance]);

  function change(changed: Partial<InstanceSettings>): void {
    const before = settings;
    setSettings(before && { ...before, ...changed });
    void run(async () => {
      try {
        await changeSettings(instance, changed);
        announce('Saved');
      } catch (error) {
        setSettings(before);
        throw error;
      }
    });
  }

  if (settings === undefined) return <Fault text={away} />;
  return (
    <div class="settings">
      {switches.map(({ name, label, about }) => (
        <label key={name} class="switch setting">
          <input
            type="checkbox"
            name={name}
            checked={settings[name]}
            onChange={({ currentTarget }) => change({ [name]: currentTarget.checked })}
          />
          <span class="switch-track" aria-hidden="true" />
          <span>
            {label} <span class="hint">{about}</span>
          </span>
        </label>
      ))}
      <CallAnswer
        text={settings.msgCall}
        isUsed={settings.rejectCall}
        isBusy={busy}
        onText={(msgCall) => change({ msgCall })}
      />
      <Fault text={fault} />
    </div>
  );
}

interface CallAnswerProps {
  readonly text: string;
  readonly isUsed: boolean;
  readonly isBusy: boolean;
  readonly onText: (text: string) => void;
}

function CallAnswer({ text, isUsed, isBusy, onText }: CallAnswerProps) {
  const [typed, setTyped] = useState(text);
  return (
    <form
      class="one-line"
      onSubmit={(event) => {
        event.preventDefault();
        onText(typed);
      }}
    >
      <Field
        label="Message after a rejected call"
        hint={isUsed ? undefined : 'Sent only while calls are rejected.'}
      >
        {(attributes) => (
          <input
            {...attributes}
            name="msgCall"
            maxLength={4096}
            value={typed}
            placeholder="Please write instead."
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        )}
      </Field>
      <Button type="submit" busy={isBusy} disabled={typed === text}>
        Save
      </Button>
    </form>
  );
}
