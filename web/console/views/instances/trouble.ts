/** What it means for a person that an instance is not connected, and what helps, by the reason that the gateway gives. */

export interface Trouble {
  readonly meaning: string;
  readonly remedy: string;
  /** A new try would end in the same way until somebody else has done something. */
  readonly lasts?: true;
}

interface Cause extends Trouble {
  readonly told: RegExp;
}

const UPDATE = 'Ask your operator to update the gateway for WhatsApp, then connect again.';

/** As the gateway words them: packages/chat-xmpp and packages/chat-whatsapp. The first that matches counts. */
const causes: readonly Cause[] = [
  // WhatsApp: disconnect-reasons.ts. An instance that was paired before connects again by itself where that may help.
  {
    told: /logged out on the phone/,
    meaning: 'The phone has removed this linked device.',
    remedy: 'Pair the phone again.',
  },
  { told: /^logged out$/, meaning: 'It was logged out.', remedy: 'Connect it to send again.' },
  {
    told: /banned the account for a while/,
    meaning: 'WhatsApp has locked the account temporarily.',
    remedy: 'WhatsApp on the phone shows for how long. Connect again after that.',
    lasts: true,
  },
  {
    told: /banned the account/,
    meaning: 'WhatsApp has banned the account.',
    remedy: 'Request a review in WhatsApp on the phone, or pair another number.',
  },
  {
    told: /no longer admits the account/,
    meaning: 'WhatsApp rejects this account or phone.',
    remedy: 'If WhatsApp works on the phone, pair it again. If not, use another number.',
  },
  {
    told: /this version of its client/,
    meaning: 'The gateway is too old for WhatsApp.',
    remedy: UPDATE,
    lasts: true,
  },
  {
    told: /does not take this client/,
    meaning: 'WhatsApp rejects the gateway’s client.',
    remedy: UPDATE,
    lasts: true,
  },
  {
    told: /does not take linked devices/,
    meaning: 'The account cannot have linked devices.',
    remedy: 'Update WhatsApp on the phone, then pair it again.',
  },
  {
    told: /another process uses the same session/,
    meaning: 'Another gateway uses this account.',
    remedy: 'Stop one of the two gateways, then connect again.',
    lasts: true,
  },
  {
    told: /^not paired: .*timed out/,
    meaning: 'No phone scanned the QR code in time, or the connection to WhatsApp was lost.',
    remedy: 'Try again with a new QR code, and keep the phone ready.',
  },
  {
    told: /WhatsApp is not available/,
    meaning: 'WhatsApp has an outage.',
    remedy: 'Wait a few minutes. If it does not reconnect, connect it again.',
  },
  {
    told: /^not paired: /,
    meaning: 'The connection to WhatsApp ended before a phone was paired.',
    remedy: 'Try again with a new QR code. If it fails again, tell your operator the reason.',
  },
  {
    told: /^(the connection (was lost|was closed|ended)|the stream broke off|WhatsApp asked to connect again)/,
    meaning: 'The connection to WhatsApp was lost.',
    remedy: 'It reconnects automatically. If it takes long, tell your operator the reason.',
  },
  {
    told: /needs a package that is not installed/,
    meaning: 'This gateway cannot connect to WhatsApp yet.',
    remedy: 'Ask your operator to install the package that the reason names.',
    lasts: true,
  },
  // XMPP: guarded-client.ts.
  {
    told: /refused the login/,
    meaning: 'The server rejects the account.',
    remedy: 'Check the account name and password. To change them, delete the instance and create it again.',
  },
  {
    told: /operator has not allowed/,
    meaning: 'The gateway may not connect to this server.',
    remedy: 'Private network addresses are blocked. Your operator can allow this one.',
  },
  {
    told: /certificate is not trusted/,
    meaning: 'The server’s certificate is not valid.',
    remedy: 'Tell the operator of that server.',
  },
  {
    told: /^the server offers no/,
    meaning: 'The gateway cannot sign in to this server safely.',
    remedy: 'Use an account on another server.',
  },
  // Telegram: failure.ts and connection.ts.
  {
    told: /does not accept the bot token/,
    meaning: 'Telegram rejects the bot token.',
    remedy: 'Get the token from @BotFather. Delete the instance and create it again with that token.',
  },
  {
    told: /another program receives the updates of this bot/,
    meaning: 'Another program uses this bot.',
    remedy: 'Stop that program or remove its webhook, then connect again.',
    lasts: true,
  },
  {
    told: /Telegram (cannot be reached|did not answer)/,
    meaning: 'Telegram does not respond.',
    remedy: 'It reconnects automatically. If it takes long, tell your operator.',
  },
  // WhatsApp Cloud API: refusals.ts.
  {
    told: /the access token (has expired|is not valid)/,
    meaning: 'Meta no longer accepts the access token.',
    remedy:
      'Create a permanent token of a system user. Delete the instance and create it again with that token.',
  },
  {
    // Every refusal ends with Meta's code.
    told: /\(\d{1,6}\)$/,
    meaning: 'Meta rejects this number.',
    remedy: 'Check the reason and WhatsApp Manager, then connect again.',
  },
  // Any network: sealer.ts.
  {
    told: /another SECRET_KEY/,
    meaning: 'The gateway can no longer read its password.',
    remedy: 'Delete the instance and create it again.',
  },
];

const unknown: Trouble = {
  meaning: 'It did not connect.',
  remedy: 'Try again. If it fails again, tell your operator.',
};

/** @param reason of the gateway; undefined where it gave none */
export const troubleOf = (reason: string | undefined): Trouble =>
  causes.find(({ told }) => reason !== undefined && told.test(reason)) ?? unknown;
