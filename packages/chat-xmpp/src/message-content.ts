/** Reads the content of a message stanza. */
import {
  fetchedAs,
  type IncomingContent,
  type IncomingVideo,
  incomingVideo,
  type MessageContext,
} from 'soundpost-chat/transport';
import { attribute, childText, type Element, lengthOf } from './element.ts';
import { bareOf, resourceOf } from './jid.ts';
import { ns } from './namespaces.ts';

const SOUND_NAME = /\.(ogg|oga|opus|m4a|mp3|aac|wav|flac|amr|3gp|weba)$/i;
/** By the ending of the name. */
const VIDEO_TYPES: Readonly<Record<string, string>> = {
  mp4: 'video/mp4',
  m4v: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
  mkv: 'video/x-matroska',
};

/** Undefined for a stanza without readable content. */
export function contentOf(stanza: Element): IncomingContent | undefined {
  const body = childText(stanza, 'body');
  const media = mediaOf(stanza);
  const text = body === undefined ? undefined : withoutFallback(stanza, body, ns.reply);
  if (media !== undefined) {
    return { kind: 'url', fallback: text || media.url, ...media };
  }
  return text === undefined || text === '' ? undefined : { kind: 'text', text };
}

export function contextOf(stanza: Element): MessageContext {
  const body = childText(stanza, 'body');
  const reply = stanza.getChild('reply', ns.reply);
  const [id, to] = [attribute(reply, 'id'), attribute(reply, 'to')];
  const quote = body === undefined ? undefined : fallbackText(stanza, body, ns.reply);
  return {
    quoted:
      id === undefined
        ? undefined
        : {
            id,
            text: quote?.replace(/^> ?/gm, '').trimEnd() || undefined,
            ...(to !== undefined && { authorJid: occupantOrPerson(to, stanza) }),
          },
    mentioned: mentionedIn(stanza),
    mentionsEveryOne: false,
    linkPreview: false,
  };
}

/** The address of a message's audio file or video, if it has one. */
function mediaOf(stanza: Element): { url: string; video?: IncomingVideo } | undefined {
  const sharing = stanza.getChild('file-sharing', ns.fileSharing);
  const shared = attribute(sharing?.getChild('sources')?.getChild('url-data', ns.urlData), 'target');
  const mediaType = childText(sharing?.getChild('file', ns.fileMetadata), 'media-type');
  if (shared !== undefined && fetchedAs(mediaType) !== undefined) {
    return fetched(httpUrl(shared), mediaType);
  }
  const url = httpUrl(childText(stanza.getChild('x', ns.outOfBand), 'url'));
  return fetched(url, typeByName(url));
}

function fetched(url: string | undefined, mediaType: string | undefined): ReturnType<typeof mediaOf> {
  const kind = fetchedAs(mediaType);
  if (url === undefined || kind === undefined) return undefined;
  return kind === 'video' ? { url, video: incomingVideo(mediaType, undefined) } : { url };
}

function typeByName(url = ''): string | undefined {
  const name = URL.parse(url)?.pathname ?? '';
  const ending = /\.(\w+)$/.exec(name.toLowerCase())?.[1] ?? '';
  return SOUND_NAME.test(name) ? 'audio/ogg' : VIDEO_TYPES[ending];
}

function httpUrl(text: string | undefined): string | undefined {
  const protocol = URL.parse(text ?? '')?.protocol;
  return protocol === 'https:' || protocol === 'http:' ? text : undefined;
}

function mentionedIn(stanza: Element): string[] {
  return stanza
    .getChildren('reference', ns.reference)
    .filter(({ attrs }) => attrs.type === 'mention')
    .flatMap((reference) => {
      const uri = attribute(reference, 'uri') ?? '';
      return uri.startsWith('xmpp:') ? [occupantOrPerson(uri.slice('xmpp:'.length), stanza)] : [];
    });
}

/**
 * The room that a message comes from names people by its own address and their nickname. Behind
 * other addresses stands a device.
 */
function occupantOrPerson(jid: string, { attrs: { type, from = '' } }: Element): string {
  const [bare, nick] = [bareOf(jid), resourceOf(jid)];
  const isOccupant = type === 'groupchat' && bare === bareOf(from) && nick !== '';
  return isOccupant ? `${bare}/${nick}` : bare;
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/** XEP-0428: the part of the body that repeats `of` for clients that do not support it. */
function fallbackRange(stanza: Element, body: string, of: string): Range | undefined {
  const mark = stanza.getChildren('fallback', ns.fallback).find(({ attrs }) => attrs.for === of);
  if (mark === undefined) {
    return undefined;
  }
  const place = mark.getChild('body');
  const length = lengthOf(body);
  const start = Number(attribute(place, 'start') ?? 0);
  const end = Number(attribute(place, 'end') ?? length);
  const sensible = Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start <= end;
  return sensible ? { start, end: Math.min(end, length) } : undefined;
}

function fallbackText(stanza: Element, body: string, of: string): string | undefined {
  const range = fallbackRange(stanza, body, of);
  return range && [...body].slice(range.start, range.end).join('');
}

function withoutFallback(stanza: Element, body: string, of: string): string {
  const range = fallbackRange(stanza, body, of);
  if (range === undefined) {
    return body;
  }
  const characters = [...body];
  return [...characters.slice(0, range.start), ...characters.slice(range.end)].join('');
}
