/**
 * A voice message as a stanza. Each client shows it by the best of what it knows: the shared file (XEP-0447), the
 * out-of-band address (XEP-0066), or the address in the text.
 */
import type { AudioMessage } from '../../../contract/gateway.ts';
import { type Element, lengthOf, xml } from './element.ts';
import { ns } from './namespaces.ts';
import type { SharedFile } from './upload.ts';

interface VoiceStanza {
  readonly messageId: string;
  readonly to: string;
  readonly isGroup: boolean;
  readonly shared: SharedFile;
  readonly fileName: string;
  readonly content: AudioMessage;
  readonly quoted: Quotation | undefined;
  readonly mentions: readonly Mention[];
}

export interface Quotation {
  /** In a room the id that the room gave it, otherwise its own. */
  readonly id: string;
  readonly authorJid: string | undefined;
  readonly text: string | undefined;
}

export interface Mention {
  readonly jid: string;
  readonly name: string;
}

export function voiceStanza(voice: VoiceStanza): Element {
  const { messageId, to, isGroup, shared, quoted, mentions } = voice;
  const quote = quoted?.text === undefined ? '' : `${quoted.text.replace(/^/gm, '> ')}\n`;
  const names = mentions.map(({ name }) => `@${name}`);
  // Clients that know only the out-of-band address want it to be the whole text, so nothing is added without need.
  const greeting = names.length === 0 ? '' : `${names.join(' ')} `;
  const body = `${quote}${greeting}${shared.url}`;
  const stanza = xml(
    'message',
    { type: isGroup ? 'groupchat' : 'chat', to, id: messageId },
    xml('body', {}, body),
    xml('origin-id', { xmlns: ns.stanzaId, id: messageId }),
    xml('x', { xmlns: ns.outOfBand }, xml('url', {}, shared.url)),
    fileSharing(voice),
    fallback(ns.fileSharing, lengthOf(quote) + lengthOf(greeting), lengthOf(body)),
    xml('markable', { xmlns: ns.chatMarkers }),
    xml('store', { xmlns: ns.hints }),
  );
  if (!isGroup) {
    // XEP-0184 §5.3: everybody in a room would answer.
    stanza.append(xml('request', { xmlns: ns.receipts }));
  }
  if (quoted !== undefined) {
    const author = quoted.authorJid === undefined ? {} : { to: quoted.authorJid };
    stanza.append(xml('reply', { xmlns: ns.reply, id: quoted.id, ...author }));
    if (quote !== '') {
      stanza.append(fallback(ns.reply, 0, lengthOf(quote)));
    }
  }
  stanza.append(...references(mentions, names, lengthOf(quote)));
  return stanza;
}

function fileSharing({ shared, fileName, content }: VoiceStanza): Element {
  return xml(
    'file-sharing',
    { xmlns: ns.fileSharing, disposition: 'inline' },
    xml(
      'file',
      { xmlns: ns.fileMetadata },
      // Without the codec, which the media type of XEP-0446 has no place for.
      xml('media-type', {}, content.mimetype.split(';')[0] ?? ''),
      xml('name', {}, fileName),
      xml('size', {}, String(shared.sizeBytes)),
      // XEP-0446: milliseconds
      xml('length', {}, String(content.seconds * 1000)),
      xml('hash', { xmlns: ns.hashes, algo: 'sha-256' }, content.fileSha256),
    ),
    xml('sources', {}, xml('url-data', { xmlns: ns.urlData, target: shared.url })),
  );
}

function fallback(of: string, start: number, end: number): Element {
  return xml(
    'fallback',
    { xmlns: ns.fallback, for: of },
    xml('body', { start: String(start), end: String(end) }),
  );
}

function references(mentions: readonly Mention[], names: readonly string[], start: number): Element[] {
  let begin = start;
  return mentions.map(({ jid }, index) => {
    const end = begin + lengthOf(names[index] ?? '');
    const reference = xml('reference', {
      xmlns: ns.reference,
      type: 'mention',
      begin: String(begin),
      end: String(end),
      uri: `xmpp:${jid}`,
    });
    begin = end + 1;
    return reference;
  });
}
