/**
 * What follows from the end of a connection, by the code that WhatsApp or Baileys gave. Codes and names: `DisconnectReason`
 * of Baileys 7, and for what the server's `failure` stanza adds, the ConnectFailureReason table of whatsmeow.
 */
type Consequence =
  /** Connect again at once: the server asked for it. */
  | 'restart'
  /** Connect again after a while. */
  | 'retry'
  /** Connect again at once by another version of the protocol, where there is one; otherwise as `stay`. */
  | 'renew'
  /** Stay away until somebody connects; the session is still good. */
  | 'stay'
  /** The session is worth nothing any more: forget it, and pair anew. */
  | 'forget';

interface DisconnectReason {
  readonly code: number;
  readonly name: string;
  readonly consequence: Consequence;
  /** Shown to callers. */
  readonly meaning: string;
}

export const disconnectReasons: readonly DisconnectReason[] = [
  { code: 401, name: 'loggedOut', consequence: 'forget', meaning: 'the device was logged out on the phone' },
  {
    code: 402,
    name: 'tempBanned',
    consequence: 'stay',
    meaning: 'WhatsApp has banned the account for a while',
  },
  {
    code: 403,
    name: 'forbidden',
    consequence: 'forget',
    meaning: 'WhatsApp no longer admits the account or its phone',
  },
  {
    code: 405,
    name: 'clientOutdated',
    consequence: 'renew',
    meaning:
      'WhatsApp no longer takes this version of its client; set WHATSAPP_VERSION to the one that web.whatsapp.com has now, or update the package baileys',
  },
  { code: 406, name: 'unknownLogout', consequence: 'forget', meaning: 'WhatsApp has banned the account' },
  {
    code: 408,
    name: 'connectionLost',
    consequence: 'retry',
    meaning: 'the connection was lost, or timed out',
  },
  {
    code: 409,
    name: 'badUserAgent',
    consequence: 'stay',
    meaning: 'WhatsApp does not take this client; update the package baileys',
  },
  {
    code: 411,
    name: 'multideviceMismatch',
    consequence: 'forget',
    meaning: 'the account does not take linked devices',
  },
  { code: 428, name: 'connectionClosed', consequence: 'retry', meaning: 'the connection was closed' },
  {
    code: 440,
    name: 'connectionReplaced',
    // Two that take the connection from each other would go on for ever, and look like abuse.
    consequence: 'stay',
    meaning: 'another process uses the same session',
  },
  // Baileys also gives this code to every stream error that it does not know, so it must not cost the session.
  { code: 500, name: 'badSession', consequence: 'retry', meaning: 'the stream broke off' },
  { code: 503, name: 'unavailableService', consequence: 'retry', meaning: 'WhatsApp is not available' },
  { code: 515, name: 'restartRequired', consequence: 'restart', meaning: 'WhatsApp asked to connect again' },
];

/** An unknown code is taken for a passing fault: to forget a good session would be worse. */
export function disconnectReason(code: number | undefined): DisconnectReason {
  return (
    disconnectReasons.find((reason) => reason.code === code) ?? {
      code: code ?? 0,
      name: 'unknown',
      consequence: 'retry',
      meaning: 'the connection ended',
    }
  );
}
