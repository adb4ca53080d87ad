/** Sending a result as a voice message, and how far it has come. */
import { useState } from 'preact/hooks';
import type { Job, VoiceMessageState } from 'soundpost-contract/job';
import { gatewayAddress } from '../../gateway.ts';
import { tellJob } from '../../live.ts';
import { keepRecipient, recentRecipients } from '../../recipients.ts';
import { api } from '../../session.ts';
import { Button, Fault, Field, useWork } from '../../ui.tsx';
import { voiceWord } from '../../words.ts';
import { RecipientField } from './recipient-field.tsx';
import {
  knowsGateway,
  type Recipient,
  type Sender,
  type Senders,
  useRecipients,
  useSenders,
} from './senders.ts';

export function Send({ job }: { readonly job: Job }) {
  const { voiceMessage, jobId } = job;
  const known = useSenders();
  // What was sent once is most likely sent to the same person again.
  const asked = job.options.voiceMessage;
  const [recent] = recentRecipients();
  const last = asked === undefined ? recent : { instance: asked.instance, name: asked.number };
  const [chosen, setChosen] = useState<string>();
  const [typed, setTyped] = useState(last?.name ?? '');
  const instance = chosen ?? usualOf(known.senders, last?.instance);
  const { recipients, isAll, fault: peopleFault } = useRecipients(instance);
  const { busy, fault, run } = useWork();

  async function send(): Promise<void> {
    const { to, name } = recipientOf(typed, recipients, isAll);
    const answer = await api().sendVoiceMessage(jobId, { instance, number: to });
    keepRecipient({ instance, to, name });
    tellJob({ ...job, voiceMessage: answer.voiceMessage });
  }

  return (
    <section id="job-send" class="card" aria-labelledby="send-title">
      <div class="card-head">
        <h2 id="send-title">Send as a voice message</h2>
        <span id="send-status" class={`status status-${signOf(voiceMessage)}`} role="status">
          {voiceMessage === undefined ? '' : voiceWord(voiceMessage)}
        </span>
      </div>
      <form
        id="send-form"
        class="send-form"
        onSubmit={(event) => {
          event.preventDefault();
          void run(send);
        }}
      >
        <InstanceField known={known} value={instance} onValue={setChosen} />
        <RecipientField recipients={recipients} value={typed} onValue={setTyped} />
        <Button type="submit" class="primary" icon="send" busy={busy}>
          {voiceMessage === undefined ? 'Send' : 'Send again'}
        </Button>
      </form>
      <p id="send-note" class="hint send-note">
        {noteOf(voiceMessage)}
      </p>
      <GatewayHint known={known} peopleFault={peopleFault} />
      <Fault text={fault} id="send-error" />
    </section>
  );
}

/** What most will want. */
function usualOf(senders: readonly Sender[] | undefined, last: string | undefined): string {
  if (senders === undefined) return '';
  const connected = senders.filter(({ isConnected }) => isConnected).map(({ name }) => name);
  return last !== undefined && connected.includes(last) ? last : (connected[0] ?? '');
}

interface InstanceFieldProps {
  readonly known: Senders;
  readonly value: string;
  readonly onValue: (name: string) => void;
}

function InstanceField({ known: { senders = [], mayBeOthers }, value, onValue }: InstanceFieldProps) {
  return (
    <Field label="From instance" id="instance">
      {(attributes) =>
        mayBeOthers ? (
          <>
            <input
              {...attributes}
              required
              autocomplete="off"
              spellcheck={false}
              list="instances"
              placeholder="main"
              value={value}
              onInput={({ currentTarget }) => onValue(currentTarget.value.trim())}
            />
            <datalist id="instances">
              {senders.map(({ name }) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </>
        ) : (
          <select
            {...attributes}
            required
            value={value}
            onChange={({ currentTarget }) => onValue(currentTarget.value)}
          >
            {value === '' ? <option value="">No connected instance</option> : null}
            {senders.map(({ name, isConnected }) => (
              <option key={name} value={name} disabled={!isConnected}>
                {isConnected ? name : `${name} (not connected)`}
              </option>
            ))}
          </select>
        )
      }
    </Field>
  );
}

/** @throws where it is neither somebody of the list nor anything that can be a number or a JID */
function recipientOf(
  typed: string,
  recipients: readonly Recipient[],
  isAll: boolean,
): { readonly to: string; readonly name: string } {
  const wanted = typed.trim();
  const picked = recipients.find(({ label }) => label.toLowerCase() === wanted.toLowerCase());
  if (picked !== undefined) return { to: picked.to, name: picked.label };
  if (isAll && !/[\d@]/.test(wanted)) {
    throw new Error(
      `This instance has no contact “${wanted}”. Pick one from the list, or enter a number with its country code.`,
    );
  }
  return { to: wanted, name: wanted };
}

function GatewayHint({ known, peopleFault }: { readonly known: Senders; readonly peopleFault: string }) {
  const fault = known.fault || peopleFault;
  if (fault !== '') {
    return <p class="hint">Contacts cannot be listed now. You can still enter a number. {fault}</p>;
  }
  if (knowsGateway()) {
    const isNone = known.senders?.every(({ isConnected }) => !isConnected) ?? false;
    return isNone ? (
      <p class="hint">
        No instance of this key is connected. Connect one under <a href="#/instances">Instances</a>.
      </p>
    ) : null;
  }
  return gatewayAddress() === undefined ? null : (
    <p class="hint">
      To pick people by name, enter the gateway key under <a href="#/instances">Instances</a>.
    </p>
  );
}

function signOf(voiceMessage: VoiceMessageState | undefined): string {
  if (voiceMessage?.status === 'failed') return 'failed';
  return voiceMessage?.status === 'sent' ? 'completed' : 'processing';
}

const MAY_HAVE_ARRIVED = 'It may have arrived. Check the chat before you send it again.';
const CHECK = 'Check the number and that the instance is connected, then send it again.';

/** By the code of a message's error: what the gateway answers with, and what the service says of the way to it. */
const remedies: Readonly<Record<string, string>> = {
  ANSWER_LOST: MAY_HAVE_ARRIVED,
  timeout: MAY_HAVE_ARRIVED,
  FILE_EXPIRED: 'Run the job again: “Reuse source” fills in its settings.',
  GATEWAY_UNAVAILABLE: 'Check that the gateway is running and the instance is connected, then send it again.',
  unknown_recipient: 'Check the number and its country code, then send it again.',
  instance_not_found: 'Choose another instance, then send it again.',
  unauthorized: 'The gateway rejects the service’s key. Tell your operator.',
  not_audio: 'Run the job again in the format Voice.',
  unsupported: 'Send it from an instance on another network.',
};

function noteOf(voiceMessage: VoiceMessageState | undefined): string {
  if (voiceMessage === undefined) return 'The messaging gateway sends it; its inbox shows it.';
  const { status, error, parts = [], fitsVoiceBubble } = voiceMessage;
  if (error !== null) {
    const isTrying = status === 'pending' || status === 'sending';
    const known = Object.hasOwn(remedies, error.code) ? remedies[error.code] : CHECK;
    const remedy = isTrying ? 'Soundpost retries for up to an hour.' : known;
    return `${error.message.charAt(0).toUpperCase()}${error.message.slice(1).replace(/\.$/, '')}. ${remedy}`;
  }
  if (parts.length > 1) {
    return `${parts.filter(({ status }) => status === 'sent').length} of ${parts.length} notes sent.`;
  }
  return fitsVoiceBubble === false
    ? 'Over 512 KiB, phones may show it as a file. The format Voice stays below that.'
    : '';
}
