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

const UPDATE = 'Tell whoever runs the gateway to update it for WhatsApp, then connect again.';

/** As the gateway words them: packages/chat-xmpp and packages/chat-whatsapp. The first that matches counts. */
const causes: readonly Cause[] = [
  // WhatsApp: disconnect-reasons.ts. An instance that was paired before connects again by itself where that may help.
  {
    told: /logged out on the phone/,
    meaning: 'The phone no longer lists it as a linked device.',
    remedy: 'Pair it with the phone again.',
  },
  { told: /^logged out$/, meaning: 'It was logged out.', remedy: 'To send again, connect it.' },
  {
    told: /banned the account for a while/,
    meaning: 'WhatsApp has locked the account for some time.',
    remedy: 'WhatsApp on the phone says how long. Connect again after that.',
    lasts: true,
  },
  {
    told: /banned the account/,
    meaning: 'WhatsApp has banned the account.',
    remedy: 'Ask for a review in WhatsApp on the phone, or pair a phone with another number.',
  },
  {
    told: /no longer admits the account/,
    meaning: 'WhatsApp does not let this account or phone in.',
    remedy:
      'See whether WhatsApp works on the phone. If it does, pair it again; if not, take another number.',
  },
  {
    told: /this version of its client/,
    meaning: 'The gateway is too old for WhatsApp.',
    remedy: UPDATE,
    lasts: true,
  },
  {
    told: /does not take this client/,
    meaning: 'WhatsApp does not know the gateway’s client.',
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
    remedy: 'Tell whoever runs the gateways that one has to stop, then connect again.',
    lasts: true,
  },
  {
    told: /^not paired: .*timed out/,
    meaning: 'No phone scanned the picture in time, or the connection to WhatsApp broke.',
    remedy: 'Begin again with a new picture, and keep the phone at hand.',
  },
  {
    told: /WhatsApp is not available/,
    meaning: 'WhatsApp has an outage.',
    remedy: 'Wait a few minutes. If it is not connected then, connect it again.',
  },
  {
    told: /^not paired: /,
    meaning: 'The connection to WhatsApp ended before a phone was paired.',
    remedy: 'Begin again with a new picture. If it happens again, tell whoever runs the gateway the reason.',
  },
  {
    told: /^(the connection (was lost|was closed|ended)|the stream broke off|WhatsApp asked to connect again)/,
    meaning: 'The connection to WhatsApp broke.',
    remedy: 'It connects again by itself. If it takes long, tell whoever runs the gateway the reason.',
  },
  {
    told: /needs a package that is not installed/,
    meaning: 'This gateway cannot connect to WhatsApp yet.',
    remedy: 'Whoever runs it has to install the package that the reason names.',
    lasts: true,
  },
  // XMPP: guarded-client.ts.
  {
    told: /refused the login/,
    meaning: 'The server does not let the account in.',
    remedy: 'Check its address and password. To change them, delete the instance and make it again.',
  },
  {
    told: /operator has not allowed/,
    meaning: 'The gateway may not connect to this server.',
    remedy: 'Addresses in private networks are closed. Whoever runs the gateway can open this one.',
  },
  {
    told: /certificate is not trusted/,
    meaning: 'The server cannot prove who it is.',
    remedy: 'Tell whoever runs that server that its certificate is at fault.',
  },
  {
    told: /^the server offers no/,
    meaning: 'The gateway cannot sign in to this server safely.',
    remedy: 'Take an account on another server.',
  },
  // Telegram: failure.ts and connection.ts.
  {
    told: /does not accept the bot token/,
    meaning: 'Telegram does not know the bot token.',
    remedy: 'Ask @BotFather for the token. Delete the instance and make it again with that one.',
  },
  {
    told: /another program receives the updates of this bot/,
    meaning: 'Another program uses this bot.',
    remedy: 'Stop that program or take its webhook away, then connect again.',
    lasts: true,
  },
  {
    told: /Telegram (cannot be reached|did not answer)/,
    meaning: 'Telegram does not answer.',
    remedy: 'It connects again by itself. If it takes long, tell the operator of the gateway.',
  },
  // WhatsApp Cloud API: refusals.ts.
  {
    told: /the access token (has expired|is not valid)/,
    meaning: 'Meta no longer takes the access token.',
    remedy: 'Make a permanent token of a system user. Delete the instance and make it again with that one.',
  },
  {
    // Every refusal ends with Meta's code.
    told: /\(\d{1,6}\)$/,
    meaning: 'Meta does not let this number in.',
    remedy: 'See what the gateway says, and WhatsApp Manager. Then connect again.',
  },
  // Any network: sealer.ts.
  {
    told: /another SECRET_KEY/,
    meaning: 'The gateway can no longer read its password.',
    remedy: 'Delete the instance and make it again.',
  },
];

const unknown: Trouble = {
  meaning: 'It did not connect.',
  remedy: 'Try again. If it happens again, tell whoever runs the gateway.',
};

/** @param reason of the gateway; undefined where it gave none */
export const troubleOf = (reason: string | undefined): Trouble =>
  causes.find(({ told }) => reason !== undefined && told.test(reason)) ?? unknown;
