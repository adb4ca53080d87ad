/** From where a voice message can be sent, and to whom: as the gateway lists them where this tab has its key, else as far as they are known without. */
import { useEffect, useState } from 'preact/hooks';
import {
  type GatewayInstance,
  gatewayAddress,
  gatewayInstances,
  gatewayKey,
  type Person,
  peopleOf,
} from '../../gateway.ts';
import { recentRecipients } from '../../recipients.ts';
import { api, isAborted, sentence } from '../../session.ts';

export interface Sender {
  readonly name: string;
  readonly isConnected: boolean;
}

export interface Senders {
  /** Undefined until they are known. */
  readonly senders?: readonly Sender[];
  /** Whether there may be others, whose names are typed. */
  readonly mayBeOthers: boolean;
  /** Why they could not be asked for. */
  readonly fault: string;
}

/** Whether the gateway can be asked. */
export const knowsGateway = (): boolean => gatewayAddress() !== undefined && gatewayKey() !== undefined;

export function useSenders(): Senders {
  const [known, setKnown] = useState<Senders>({ mayBeOthers: true, fault: '' });
  useEffect(() => {
    const ending = new AbortController();
    sendersOf(ending.signal).then(setKnown, (error: unknown) => {
      if (!isAborted(error)) setKnown({ senders: [], mayBeOthers: true, fault: sentence(error) });
    });
    return () => ending.abort();
  }, []);
  return known;
}

async function sendersOf(signal: AbortSignal): Promise<Senders> {
  const opened = await openedInstances(signal);
  const opensAll = opened === undefined || opened.includes('*');
  if (knowsGateway()) {
    const listed = await gatewayInstances({ signal });
    const open = listed.filter(({ name }) => opensAll || opened.includes(name));
    return { senders: open.map(asSender), mayBeOthers: false, fault: '' };
  }
  const names = (opened ?? []).filter((name) => name !== '*');
  const proposed = opensAll ? ['main', ...recentRecipients().map(({ instance }) => instance)] : [];
  return {
    senders: [...new Set([...names, ...proposed])].map((name) => ({ name, isConnected: true })),
    mayBeOthers: opensAll,
    fault: '',
  };
}

const asSender = ({ name, status }: GatewayInstance): Sender => ({ name, isConnected: status === 'open' });

/** What the key opens; undefined where it may not ask. */
async function openedInstances(signal: AbortSignal): Promise<readonly string[] | undefined> {
  try {
    return (await api().usage({ signal })).key.instances;
  } catch (error) {
    if (isAborted(error)) throw error;
    return undefined;
  }
}

/** Somebody, or a group, that can be picked. */
export interface Recipient {
  /** What is shown and typed; no two of a list have the same. */
  readonly label: string;
  /** The number, or that it is a group. */
  readonly about: string;
  /** A number or a JID. */
  readonly to: string;
}

/** Of the instance: its people and groups, or those that this tab has sent to before. */
export function useRecipients(instance: string): {
  readonly recipients: readonly Recipient[];
  /** Whether these are all that the instance knows. */
  readonly isAll: boolean;
  readonly fault: string;
} {
  const [people, setPeople] = useState<readonly Person[]>();
  const [fault, setFault] = useState('');
  useEffect(() => {
    setPeople(undefined);
    setFault('');
    if (instance === '' || !knowsGateway()) return;
    const ending = new AbortController();
    peopleOf(instance, { signal: ending.signal }).then(setPeople, (error: unknown) => {
      if (!isAborted(error)) setFault(sentence(error));
    });
    return () => ending.abort();
  }, [instance]);
  const recipients = people === undefined ? recentOf(instance) : recipientsOf(people);
  return { recipients, isAll: people !== undefined, fault };
}

const recentOf = (instance: string): Recipient[] =>
  recentRecipients()
    .filter((recent) => recent.instance === instance)
    .map(({ to, name }) => ({ label: name, about: name === to ? '' : numberOf(to), to }));

function recipientsOf(people: readonly Person[]): Recipient[] {
  const named = people.map(({ jid, name, isGroup }) => ({
    label: name === '' ? numberOf(jid) : name,
    about: isGroup ? 'Group' : numberOf(jid),
    to: jid,
  }));
  const isTwice = (label: string): boolean => named.filter((one) => one.label === label).length > 1;
  return named.map((one) =>
    isTwice(one.label) ? { ...one, label: `${one.label} (${numberOf(one.to)})` } : one,
  );
}

/** A JID without its server. */
const numberOf = (jid: string): string => jid.split('@')[0] ?? jid;
