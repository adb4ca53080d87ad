/**
 * Privacy settings from XMPP: who can read the profile (access model, XEP-0060 §4.5), whose
 * messages the server archives (XEP-0441), who sees the presence, and the gateway's own settings.
 */
import type { InstanceSettings } from 'soundpost-contract/gateway-instances';
import type { PrivacySettings } from 'soundpost-contract/gateway-operations';
import type { AddressBook } from './address-book.ts';
import { attribute, readForm, xml } from './element.ts';
import { isNothingThere } from './failure.ts';
import { ns } from './namespaces.ts';
import type { Stream } from './stream.ts';

type Audience = 'all' | 'contacts' | 'none';

/** Access models of a node (XEP-0060 §4.5) by who can read it. */
const audienceOfModel: Readonly<Record<string, Audience>> = {
  open: 'all',
  presence: 'contacts',
  roster: 'contacts',
  authorize: 'contacts',
  whitelist: 'none',
};

/** `default` of the archive's preferences (XEP-0441 §2). */
const audienceOfArchive: Readonly<Record<string, Audience>> = {
  always: 'all',
  roster: 'contacts',
  never: 'none',
};

/** Pictures (XEP-0084) and cards (XEP-0292); the first that exists counts. */
const profileNodes = ['urn:xmpp:avatar:metadata', 'urn:xmpp:vcard4'];

export async function privacySettings(
  stream: Stream,
  addressBook: AddressBook,
  settings: InstanceSettings,
): Promise<PrivacySettings> {
  const [profile, status] = await Promise.all([profileAudience(stream), archiveAudience(stream)]);
  return {
    readreceipts: settings.readMessages ? 'all' : 'none',
    profile,
    status,
    // Presence is always sent to those who may see it (RFC 6121 §4.2).
    online: 'match_last_seen',
    last: addressBook.entries().some(({ seesPresence }) => seesPresence) ? 'contacts' : 'none',
    // Invitations are reported, but only callers with the instance's key can accept them.
    groupadd: 'none',
  };
}

async function profileAudience(stream: Stream): Promise<Audience> {
  for (const node of profileNodes) {
    const model = await accessModel(stream, node);
    if (model !== undefined) {
      return audienceOfModel[model] ?? 'none';
    }
  }
  // A missing node would be published for contacts (XEP-0163 §3.1).
  return 'contacts';
}

/** Undefined if the node does not exist. */
async function accessModel(stream: Stream, node: string): Promise<string | undefined> {
  try {
    const answer = await stream.query(
      'get',
      xml('pubsub', { xmlns: ns.pubsubOwner }, xml('configure', { node })),
    );
    const form = answer.getChild('pubsub', ns.pubsubOwner)?.getChild('configure')?.getChild('x', ns.form);
    return readForm(form).get('pubsub#access_model')?.[0];
  } catch (error) {
    if (isNothingThere(error)) {
      return undefined;
    }
    throw error;
  }
}

async function archiveAudience(stream: Stream): Promise<Audience> {
  try {
    const answer = await stream.query('get', xml('prefs', { xmlns: ns.archivePreferences }));
    const preference = attribute(answer.getChild('prefs', ns.archivePreferences), 'default') ?? '';
    return audienceOfArchive[preference] ?? 'none';
  } catch (error) {
    if (isNothingThere(error)) {
      return 'none';
    }
    throw error;
  }
}
