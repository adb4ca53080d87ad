/** The account's bookmarked rooms (XEP-0402), stored on its server. */
import { attribute, childText, type Element, submission, xml } from './element.ts';
import { conditionOf, isNothingThere, refusal } from './failure.ts';
import { bareOf, localOf } from './jid.ts';
import { ns } from './namespaces.ts';
import type { Stream } from './stream.ts';

interface Bookmark {
  readonly room: string;
  readonly name: string;
  /** Entered automatically. */
  readonly autojoin: boolean;
  readonly nick: string | undefined;
  readonly password: string | undefined;
}

/** Throws network_refused, not_connected. */
export async function readBookmarks(stream: Stream): Promise<Bookmark[]> {
  const items = xml('items', { node: ns.bookmarks });
  try {
    const answer = await stream.query('get', xml('pubsub', { xmlns: ns.pubsub }, items));
    const found = answer.getChild('pubsub', ns.pubsub)?.getChild('items')?.getChildren('item') ?? [];
    return found.flatMap((item) => bookmark(item) ?? []);
  } catch (error) {
    // There are no bookmarks, or the server does not store any.
    if (isNothingThere(error)) {
      return [];
    }
    throw refusal('reading the kept rooms', error);
  }
}

/** Required by XEP-0402 §3.3: keeps the list private and lets no bookmark replace another. */
const nodeOptions = {
  'pubsub#persist_items': 'true',
  'pubsub#max_items': 'max',
  'pubsub#send_last_published_item': 'never',
  'pubsub#access_model': 'whitelist',
};

/** Throws network_refused, not_connected. */
export async function addBookmark(stream: Stream, bookmark: Bookmark): Promise<void> {
  try {
    await publish(stream, bookmark).catch(async (error: unknown) => {
      // Another client created the list with other options (XEP-0060 §7.1.5).
      if (conditionOf(error) !== 'conflict') throw error;
      await configure(stream);
      await publish(stream, bookmark);
    });
  } catch (error) {
    throw refusal('keeping the room', error);
  }
}

async function publish(stream: Stream, { room, name, autojoin, nick, password }: Bookmark): Promise<void> {
  const conference = xml(
    'conference',
    { xmlns: ns.bookmarks, name, autojoin: String(autojoin) },
    ...(nick === undefined ? [] : [xml('nick', {}, nick)]),
    ...(password === undefined ? [] : [xml('password', {}, password)]),
  );
  await stream.query(
    'set',
    xml(
      'pubsub',
      { xmlns: ns.pubsub },
      xml('publish', { node: ns.bookmarks }, xml('item', { id: room }, conference)),
      xml('publish-options', {}, options('publish-options')),
    ),
  );
}

async function configure(stream: Stream): Promise<void> {
  const form = xml('configure', { node: ns.bookmarks }, options('node_config'));
  await stream.query('set', xml('pubsub', { xmlns: ns.pubsubOwner }, form));
}

function options(form: 'publish-options' | 'node_config'): Element {
  return submission(new Map(), { FORM_TYPE: `${ns.pubsub}#${form}`, ...nodeOptions });
}

/** Whether the account's server reports a change of the bookmarks. */
export function reportsBookmarks(message: Element): boolean {
  const items = message.getChild('event', ns.pubsubEvent)?.getChild('items');
  return attribute(items, 'node') === ns.bookmarks;
}

function bookmark(item: Element): Bookmark | undefined {
  const room = bareOf(attribute(item, 'id') ?? '');
  const conference = item.getChild('conference', ns.bookmarks);
  if (conference === undefined || !room.includes('@')) {
    return undefined;
  }
  const autojoin = attribute(conference, 'autojoin');
  return {
    room,
    name: attribute(conference, 'name') ?? localOf(room),
    autojoin: autojoin === 'true' || autojoin === '1',
    nick: childText(conference, 'nick'),
    password: childText(conference, 'password'),
  };
}
