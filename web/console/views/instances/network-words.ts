/** Networks and states of instances, in words for people. */
import type { ConnectionState, TransportKind } from 'soundpost-contract/gateway-instances';
import type { ShownStatus } from '../../words.ts';

export const networks: Readonly<Record<TransportKind, { readonly name: string; readonly about: string }>> = {
  whatsapp: {
    name: 'WhatsApp',
    about:
      'As a linked device of an account of yours. Experimental and unofficial: WhatsApp bans accounts for it, so take a number that you can lose.',
  },
  xmpp: {
    name: 'XMPP',
    about: 'An account on any server of the open network (Jabber).',
  },
  loopback: {
    name: 'Loopback',
    about: 'A small network inside the gateway, with people that exist only there, to try things out.',
  },
};

export const stateWords: Readonly<Record<ConnectionState, string>> = {
  open: 'Connected',
  connecting: 'Connecting',
  close: 'Not connected',
};

/** Colours of the badge. */
export const stateSigns: Readonly<Record<ConnectionState, ShownStatus>> = {
  open: 'completed',
  connecting: 'processing',
  close: 'queued',
};
