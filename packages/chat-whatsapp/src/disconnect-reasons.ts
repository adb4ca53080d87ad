/**
 * What to do when a connection ends, by the code that WhatsApp or Baileys gave. Codes and names:
 * `DisconnectReason` of Baileys 7; for `failure` stanzas, whatsmeow's ConnectFailureReason.
 */
type Consequence =
  /** Connect again at once: the server asked for it. */
  | 'restart'
  /** Connect again after a delay. */
  | 'retry'
  /** Connect again at once with another protocol version if there is one; otherwise as `stay`. */
  | 'renew'
  /** Stay offline until a caller connects; the session is still valid. */
  | 'stay'
  /** The session is invalid: delete it and pair again. */
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
      'WhatsApp no longer accepts this version of its client; set WHATSAPP_VERSION to the current version of web.whatsapp.com, or update the package baileys',
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
    // Two processes that keep replacing each other would never stop, and look like abuse.
    consequence: 'stay',
    meaning: 'another process uses the same session',
  },
  // Baileys also gives this code to every unknown stream error, so it must not cost the session.
  { code: 500, name: 'badSession', consequence: 'retry', meaning: 'the stream broke off' },
  { code: 503, name: 'unavailableService', consequence: 'retry', meaning: 'WhatsApp is not available' },
  { code: 515, name: 'restartRequired', consequence: 'restart', meaning: 'WhatsApp asked to connect again' },
];

/** An unknown code counts as temporary: deleting a valid session would be worse. */
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
