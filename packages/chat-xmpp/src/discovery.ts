/** Finds the server's services for file uploads and rooms (XEP-0030). */

import { createHash } from 'node:crypto';
import { type Element, readForm, xml } from './element.ts';
import { ns } from './namespaces.ts';
import type { Stream } from './stream.ts';

interface UploadService {
  readonly jid: string;
  readonly maxBytes: number | undefined;
}

interface DiscoveryOptions {
  readonly stream: Stream;
  readonly domain: string;
  /** As set by the operator; undefined: asks the server. */
  readonly uploadService: string | undefined;
  readonly mucService: string | undefined;
}

/** A server has a handful of items; of longer lists only the first are queried. */
const MAX_ITEMS = 32;
const ITEM_TIMEOUT_MS = 5_000;

interface Services {
  readonly upload: UploadService | undefined;
  readonly muc: string | undefined;
}

export class Discovery {
  readonly #options: DiscoveryOptions;
  #services: Promise<Services> | undefined;
  readonly #rooms = new Map<string, Promise<boolean>>();

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  /** Call this for a new session, since services may have changed. */
  forget(): void {
    this.#services = undefined;
    this.#rooms.clear();
  }

  async upload(): Promise<UploadService | undefined> {
    return (await this.#find()).upload;
  }

  /** The service that hosts the rooms of the account's own server. */
  async muc(): Promise<string | undefined> {
    return this.#options.mucService ?? (await this.#find()).muc;
  }

  /** Whether addresses at this domain are rooms. */
  hasRooms(domain: string): Promise<boolean> {
    const known = this.#rooms.get(domain);
    if (known !== undefined) {
      return known;
    }
    const asked = this.info(domain).then(isMuc, () => false);
    this.#rooms.set(domain, asked);
    return asked;
  }

  /** @throws StanzaError for an entity that does not exist or does not answer */
  async info(jid: string): Promise<Element> {
    const answer = await this.#options.stream.query('get', xml('query', { xmlns: ns.discoInfo }), {
      to: jid,
      timeoutMs: ITEM_TIMEOUT_MS,
    });
    return answer.getChild('query', ns.discoInfo) ?? answer;
  }

  #find(): Promise<Services> {
    this.#services ??= this.#ask().catch((error: unknown) => {
      this.#services = undefined;
      throw error;
    });
    return this.#services;
  }

  async #ask(): Promise<Services> {
    const { stream, domain, uploadService } = this.#options;
    const items = await stream.query('get', xml('query', { xmlns: ns.discoItems }), { to: domain });
    const listed = items.getChild('query', ns.discoItems)?.getChildren('item') ?? [];
    const jids = listed.map((item) => String(item.attrs.jid)).filter((jid) => !jid.includes('@'));
    const asked = new Set([...(uploadService ? [uploadService] : []), domain, ...jids.slice(0, MAX_ITEMS)]);
    const infos = await Promise.all(
      [...asked].map(async (jid) => ({ jid, info: await this.info(jid).catch(() => undefined) })),
    );
    const found = infos.flatMap(({ jid, info }) => (info === undefined ? [] : [{ jid, info }]));
    const uploads = found.filter(({ info }) => hasFeature(info, ns.upload));
    const upload = uploadService ? uploads.find(({ jid }) => jid === uploadService) : uploads[0];
    return {
      upload: upload && { jid: upload.jid, maxBytes: maxBytes(upload.info) },
      muc: found.find(({ info }) => isMuc(info))?.jid,
    };
  }
}

function hasFeature(info: Element, feature: string): boolean {
  return info.getChildren('feature').some(({ attrs }) => attrs.var === feature);
}

function isMuc(info: Element): boolean {
  const isConference = info.getChildren('identity').some(({ attrs }) => attrs.category === 'conference');
  return isConference && hasFeature(info, ns.muc);
}

/** XEP-0363 §4: a form in the answer has the largest file size. */
function maxBytes(info: Element): number | undefined {
  const values = info
    .getChildren('x', ns.form)
    .map(readForm)
    .find((form) => form.get('FORM_TYPE')?.[0] === ns.upload);
  const size = Number(values?.get('max-file-size')?.[0]);
  return Number.isFinite(size) && size > 0 ? size : undefined;
}

// The features of the account's device, sent on request (XEP-0030) and announced with its presence
// (XEP-0115).

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
  // XEP-0163 §4.3.1: requests a notification when another device changes the bookmarks.
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

/** For a presence. Clients that do not know the hash request the features. */
export function announcement(): Element {
  const { category, type, name } = identity;
  const listed = [`${category}/${type}//${name}`, ...features].map((entry) => `${entry}<`).join('');
  const ver = createHash('sha1').update(listed).digest('base64');
  return xml('c', { xmlns: ns.capabilities, hash: 'sha-1', node: NODE, ver });
}
