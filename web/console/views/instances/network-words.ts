/** Networks and states of instances, in words for people. */
import type { ConnectionState, TransportKind } from 'soundpost-contract/gateway-instances';
import type { ShownStatus } from '../../words.ts';

export const networks: Readonly<Record<TransportKind, { readonly name: string; readonly about: string }>> = {
  whatsapp: {
    name: 'WhatsApp',
    about:
      'As a linked device of an account of yours. Unofficial: WhatsApp bans accounts for it, so take a number that you can lose.',
  },
  'whatsapp-cloud': {
    name: 'WhatsApp Cloud API',
    about:
      'A business number of yours, over the official API of Meta. It needs an app on developers.facebook.com.',
  },
  telegram: {
    name: 'Telegram',
    about: 'A bot of yours. Ask @BotFather in Telegram for one; it answers the token.',
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
