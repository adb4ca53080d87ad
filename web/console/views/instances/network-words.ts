/** Networks and states of instances, in words for people. */
import type { ConnectionState, TransportKind } from 'soundpost-contract/gateway-instances';
import type { ShownStatus } from '../../words.ts';

export const networks: Readonly<Record<TransportKind, { readonly name: string; readonly about: string }>> = {
  whatsapp: {
    name: 'WhatsApp',
    about:
      'Your account, through a linked device. Unofficial: WhatsApp may ban the account, so use a number you can lose.',
  },
  'whatsapp-cloud': {
    name: 'WhatsApp Cloud API',
    about: 'Your business number, through Meta’s official API. Needs an app on developers.facebook.com.',
  },
  telegram: {
    name: 'Telegram',
    about: 'Your bot. @BotFather in Telegram creates one and gives you its token.',
  },
  xmpp: {
    name: 'XMPP',
    about: 'An account on any XMPP (Jabber) server.',
  },
  loopback: {
    name: 'Loopback',
    about: 'A test network inside the gateway, with simulated people.',
  },
};

export const stateWords: Readonly<Record<ConnectionState, string>> = {
  open: 'Connected',
  connecting: 'Connecting',
  close: 'Disconnected',
};

/** Colours of the badge. */
export const stateSigns: Readonly<Record<ConnectionState, ShownStatus>> = {
  open: 'completed',
  connecting: 'processing',
  close: 'queued',
};
