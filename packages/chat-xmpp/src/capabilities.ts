/** What the account's device can do, as it tells whoever asks (XEP-0030) and announces with its presence (XEP-0115). */
import { createHash } from 'node:crypto';
import { type Element, xml } from './element.ts';
import { ns } from './namespaces.ts';

const identity = { category: 'client', type: 'bot', name: 'Soundpost' };
const NODE = 'https://soundpost.invalid';

const features = [
  ns.call,
  ns.capabilities,
  ns.chatMarkers,
  ns.chatStates,
  ns.conference,
  ns.correction,
  ns.discoInfo,
  ns.fallback,
  ns.fileSharing,
  ns.outOfBand,
  ns.ping,
  ns.receipts,
  ns.reference,
  ns.reply,
  ns.stanzaId,
  // XEP-0163 §4.3.1: to be told when another device changes the list of kept rooms.
  `${ns.bookmarks}+notify`,
].toSorted();

export function capabilities(node: string | undefined): Element {
  return xml(
    'query',
    { xmlns: ns.discoInfo, ...(node === undefined ? {} : { node }) },
    xml('identity', identity),
    ...features.map((feature) => xml('feature', { var: feature })),
  );
}

/** For a presence. Who does not know the hash yet asks for what it stands for. */
export function announcement(): Element {
  const { category, type, name } = identity;
  const listed = [`${category}/${type}//${name}`, ...features].map((entry) => `${entry}<`).join('');
  const ver = createHash('sha1').update(listed).digest('base64');
  return xml('c', { xmlns: ns.capabilities, hash: 'sha-1', node: NODE, ver });
}
