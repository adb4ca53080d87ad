/** Parses the recipients that callers write (decisions B "number"). */
import { GatewayError } from 'soundpost-contract/gateway-errors';

export interface Address {
  /** As the caller wrote it. */
  readonly text: string;
  /** The number without punctuation; empty if a JID's local part is a name. */
  readonly digits: string;
  /** The part after `@`, in lower case; undefined for a bare number. */
  readonly suffix: string | undefined;
}

/** WhatsApp's suffixes, from which this interface comes; elsewhere only the number counts. */
const FOREIGN_PERSON_SUFFIXES = new Set(['s.whatsapp.net', 'c.us']);
const FOREIGN_GROUP_SUFFIX = 'g.us';

/** The name of a public group or channel on Telegram; no other network has such names. */
const PUBLIC_NAME = /^@\w+$/;
const NUMBER = /^[+\d(). -]+$/;
/** Of a JID: a dot there belongs to a name. */
const LOCAL_NUMBER = /^[+\d() -]+$/;
/** Phones and web pages copy them along with a number; they show nothing (UAX #9, 2). */
const DIRECTION_MARKS = /\p{Bidi_Control}/gu;
/** Spaces that keep the groups of a number on one line. */
const FIXED_SPACES = /[\u00a0\u2007\u202f]/g;
/** WhatsApp's channels, its stories and its broadcast lists. */
const CHANNEL = /^[^@]*@newsletter$|^(status|\d+)@broadcast$/i;
// The device part of multi-device JIDs (`number:device@suffix`) does not change the recipient.
const JID = /^([^@\s/:]+)(?::\d+)?@([A-Za-z0-9.-]+)$/;

/**
 * @param field named in the error. Throws bad_request if the text is neither number nor JID, and
 * unsupported for a channel or a broadcast.
 */
export function parseAddress(text: string, field: string): Address {
  const trimmed = text.replace(DIRECTION_MARKS, '').replace(FIXED_SPACES, ' ').trim();
  if (CHANNEL.test(trimmed)) {
    throw new GatewayError(
      'unsupported',
      `${field}: channels (@newsletter) and broadcasts (status@broadcast) are not supported`,
    );
  }
  const jid = JID.exec(trimmed);
  if (jid?.[1] !== undefined && jid[2] !== undefined) {
    const local = jid[1];
    return {
      text: trimmed,
      digits: LOCAL_NUMBER.test(local) ? local.replace(/\D/g, '') : '',
      suffix: jid[2].toLowerCase(),
    };
  }
  // No network has this suffix, so that only Telegram, which reads the text, finds it.
  if (PUBLIC_NAME.test(trimmed)) return { text: trimmed, digits: '', suffix: '' };
  const digits = trimmed.replace(/\D/g, '');
  if (!NUMBER.test(trimmed) || digits === '') {
    throw new GatewayError('bad_request', `${field}: must be a phone number with country code, or a JID`);
  }
  return { text: trimmed, digits, suffix: undefined };
}

/** Whether the address can be a person or group of the network with these suffixes. */
export function mayMean(
  address: Address,
  kind: 'person' | 'group',
  own: { person: string; group: string },
): boolean {
  if (address.suffix === undefined || address.suffix === own[kind]) {
    return true;
  }
  return kind === 'person'
    ? FOREIGN_PERSON_SUFFIXES.has(address.suffix)
    : address.suffix === FOREIGN_GROUP_SUFFIX;
}

/** The JID of a mention, as far as the text says it. @param ownJid of the instance: its network */
export function mentionedJid(text: string, ownJid: string): string {
  const domain = ownJid.slice(ownJid.lastIndexOf('@') + 1).replace(/\/.*$/, '');
  try {
    const address = parseAddress(text, 'mentioned');
    const isPerson = address.digits !== '' && mayMean(address, 'person', { person: domain, group: '' });
    return isPerson && domain !== '' ? `${address.digits}@${domain}` : address.text;
  } catch {
    // An occupant of an XMPP room.
    return text;
  }
}

/** Whether a number or JID, as a caller wrote it, is this JID of an instance's network. */
export function meansJid(text: string, jid: string, isGroup: boolean): boolean {
  const at = jid.lastIndexOf('@');
  const [local, suffix] = [jid.slice(0, at), jid.slice(at + 1)];
  if (text.trim().toLowerCase() === jid.toLowerCase()) {
    return true;
  }
  let address: Address;
  try {
    address = parseAddress(text, 'where');
  } catch {
    return false;
  }
  const kind = isGroup ? 'group' : 'person';
  // Telegram's ids keep their sign.
  const number = `${/^\s*-/.test(text) ? '-' : ''}${address.digits}`;
  return number === local && mayMean(address, kind, { person: suffix, group: suffix });
}
