/** What servers answer for a part of a stream instead of it: a table, and a server's behaviour for each row. */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';

/** How the right bytes are not sent. */
type Answer = (bytes: Buffer, response: ServerResponse) => void;

export interface Lie {
  readonly name: string;
  /** The folder of a stream, and its playlist or manifest. */
  readonly stream: string;
  readonly playlist: string;
  /** Paths that are lied about. */
  readonly about: RegExp;
  readonly answer: Answer;
  /** Seconds that are missing at least and at most, or what the job fails with. */
  readonly ends: readonly [number, number] | RegExp;
}

const send: Answer = (bytes, response) => {
  response.writeHead(200, { 'content-length': bytes.length }).end(bytes);
};
const instead =
  (change: (bytes: Buffer) => Buffer): Answer =>
  (bytes, response) =>
    send(change(bytes), response);

const PACKET = 188;
const packets = (bytes: Buffer, from: number, to: number): Buffer => {
  const count = Math.floor(bytes.length / PACKET);
  return bytes.subarray(Math.floor(count * from) * PACKET, Math.floor(count * to) * PACKET);
};

const empty = instead(() => Buffer.alloc(0));
const half = instead((bytes) => bytes.subarray(0, bytes.length / 2));
const page = instead(() => Buffer.from('<!doctype html><title>Sign in</title>'.repeat(20)));
const zeros = instead(({ length }) => Buffer.alloc(length));
const noise = instead(({ length }) => randomBytes(length));
const json = instead(() => Buffer.from('{"error":"token expired"}'));
/** Less than its Content-Length. */
const cutOff: Answer = (bytes, response) => {
  response.writeHead(200, { 'content-length': bytes.length });
  response.write(bytes.subarray(0, bytes.length / 2), () => response.socket?.end());
};
const nothingCame: Answer = (bytes, response) => {
  response.writeHead(200, { 'content-length': bytes.length });
  response.flushHeaders();
  response.socket?.end();
};
const cutInChunks: Answer = (bytes, response) => {
  response.writeHead(200);
  response.write(bytes.subarray(0, bytes.length / 2), () => response.socket?.end());
};
/** Neither a length nor chunks: the end of the connection is the end. */
const closed =
  (part: (bytes: Buffer) => Buffer): Answer =>
  (bytes, response) => {
    response.removeHeader('transfer-encoding');
    response.useChunkedEncodingByDefault = false;
    response.writeHead(200, { connection: 'close' }).end(part(bytes));
  };
const hole = instead((bytes) => {
  const { length } = bytes;
  return Buffer.from(bytes).fill(0, Math.floor(length * 0.4), Math.floor(length * 0.6));
});
const headLost = instead((bytes) => packets(bytes, 0.5, 1));
const packetsLost = instead((bytes) => Buffer.concat([packets(bytes, 0, 0.3), packets(bytes, 0.6, 1)]));
const lines = (from: number, to: number) => (bytes: Buffer) =>
  Buffer.from(bytes.toString().split('\n').slice(from, to).join('\n'));
const linesEnded = (to: number) => (bytes: Buffer) => Buffer.concat([lines(0, to)(bytes), Buffer.from('\n')]);

const whole: Lie['ends'] = [1.9, 2.1];
const about = (nth: number, end = 'ts') => new RegExp(`/[^/]*?${nth}\\.${end}$`);

/** Each is of six segments of two seconds. */
const HLS = 'index.m3u8';
const row = (
  stream: string,
  name: string,
  answer: Answer,
  ends: Lie['ends'] = whole,
  what: RegExp = about(2),
  playlist = HLS,
): Lie => ({ name: `${stream}: ${name}`, stream, playlist, about: what, answer, ends });

const ALL = /\.(ts|m4s|aac|mp3)$/;
const FAILED = /empty, incomplete or unreadable/;
const M4S = about(2, 'm4s');
const CHUNK = /chunk-stream0-0*3\.m4s$/;
export const CUT = /is incomplete|connection broke/;

/** @param neighbours by stream, other files that might be sent instead */
export function lies(neighbours: (stream: string, name: string) => Buffer): readonly Lie[] {
  const other = (stream: string, name: string) => instead(() => neighbours(stream, name));
  const dash = (stream: string): Lie[] => [
    row(stream, 'empty', empty, whole, CHUNK, 'index.mpd'),
    row(stream, 'half', half, [0.5, 2.1], CHUNK, 'index.mpd'),
    row(stream, 'cut off', cutOff, [0.5, 2.1], CHUNK, 'index.mpd'),
    row(stream, 'a page', page, whole, CHUNK, 'index.mpd'),
    row(stream, 'an empty header', empty, /header of the stream is empty/, /init/, 'index.mpd'),
  ];
  return [
    // The core's: each container, each kind of end.
    row('ts', 'empty', empty),
    row('ts', 'half', half, [0.8, 1.2]),
    row('fmp4', 'a page', page, whole, M4S),
    row('packed-aac', 'cut off', cutOff, [0.8, 2.1], about(2, 'aac')),
    row('number', 'half', half, [0.5, 2.1], CHUNK, 'index.mpd'),
    row('ts', 'all a page', page, FAILED, ALL),
    row('ts', 'a playlist cut in a line', half, CUT, /m3u8$/),
    row('number', 'a manifest cut off', half, CUT, /mpd$/, 'index.mpd'),
    // Transport streams.
    row('ts', 'cut off', cutOff, [0.8, 2.1]),
    row('ts', 'cut off in chunks', cutInChunks, [0.8, 2.1]),
    row(
      'ts',
      'closed in the middle',
      closed((bytes) => bytes.subarray(0, bytes.length / 2)),
      [0.8, 1.2],
    ),
    row('ts', 'nothing but a length', nothingCame),
    row(
      'ts',
      'whole packets, but half of them',
      instead((bytes) => packets(bytes, 0, 0.5)),
      [0.8, 1.2],
    ),
    row('ts', 'without its beginning', headLost, [0.8, 1.2]),
    row('ts', 'without some packets', packetsLost, [0.4, 1.2]),
    row(
      'ts',
      'without a twentieth at its end',
      instead((bytes) => packets(bytes, 0, 0.95)),
      [0.05, 0.3],
    ),
    row('ts', 'a page', page),
    row('ts', 'an error as JSON', json),
    row('ts', 'zeros', zeros),
    row('ts', 'noise', noise),
    row('ts', 'a hole', hole, [0.3, 0.8]),
    row('ts', 'the segment before', other('ts', 'index1.ts')),
    row('ts', 'the segment behind', other('ts', 'index3.ts')),
    row('ts', 'another container', other('fmp4', 'index2.m4s')),
    row('ts', 'the first is empty', empty, whole, about(0)),
    row('ts', 'the last is empty', empty, whole, about(5)),
    row('ts', 'the last is half', half, [0.8, 1.2], about(5)),
    row('ts', 'three in a row', empty, [5.9, 6.1], /[123]\.ts$/),
    row('ts', 'all but one', empty, [9.8, 10.2], /[01345]\.ts$/),
    row('ts', 'all empty', empty, FAILED, ALL),
    row('ts', 'all cut off before a byte', nothingCame, FAILED, ALL),
    row('ts', 'gone', (_, response) => response.writeHead(404).end(), /HTTP 404/),
    row('long', 'twelve seconds', empty, [11.9, 12.1], /[2-7]\.ts$/),
    row('muxed', 'half', half, [0.7, 1.3]),
    row('muxed', 'without some packets', packetsLost, [0.4, 1.2]),
    row('muxed', 'empty', empty),
    // fMP4.
    row('fmp4', 'empty', empty, whole, M4S),
    row('fmp4', 'half', half, whole, M4S),
    row('fmp4', 'cut off', cutOff, whole, M4S),
    row(
      'fmp4',
      'its description alone',
      instead((bytes) => bytes.subarray(0, 300)),
      whole,
      M4S,
    ),
    row('fmp4', 'zeros', zeros, whole, M4S),
    row('fmp4', 'the segment before', other('fmp4', 'index1.m4s'), whole, M4S),
    row('fmp4', 'the segment behind', other('fmp4', 'index3.m4s'), whole, M4S),
    row('fmp4', 'the first is empty', empty, whole, about(0, 'm4s')),
    row('fmp4', 'an empty header', empty, /header of the stream is empty/, /init/),
    row('fmp4', 'a header cut off', half, /header of the stream/, /init/),
    row('fmp4', 'a page as header', page, /header of the stream.*web page/, /init/),
    row('fmp4', 'a segment as header', other('fmp4', 'index1.m4s'), /header of the stream/, /init/),
    // Packed audio.
    row('packed-aac', 'empty', empty, whole, about(2, 'aac')),
    row('packed-aac', 'half', half, [0.8, 1.2], about(2, 'aac')),
    row('packed-aac', 'a page', page, whole, about(2, 'aac')),
    row('packed-aac', 'the first is empty', empty, whole, about(0, 'aac')),
    row('packed-aac', 'the last is half', half, [0.8, 1.2], about(5, 'aac')),
    row('packed-mp3', 'empty', empty, whole, about(2, 'mp3')),
    row('packed-mp3', 'half', half, [0.8, 1.2], about(2, 'mp3')),
    row('ac3', 'empty', empty),
    row('ac3', 'half', half, [0.8, 1.2]),
    // Keys and byte ranges.
    row('encrypted', 'noise', noise),
    row('encrypted', 'not in whole blocks', half, [0.8, 2.1]),
    row('encrypted', 'cut off', cutOff, [0.8, 2.1]),
    row('encrypted', 'an empty key', empty, /16 bytes/, /key$/),
    row('encrypted', 'a page as key', page, /16 bytes/, /key$/),
    row(
      'encrypted',
      'another key',
      instead(() => Buffer.from('another sixteen.')),
      FAILED,
      /key$/,
    ),
    // One that is cut off gives what has come of it, and that depends on the time.
    row('one-file', 'nothing but a length', nothingCame, FAILED, /index\.ts$/),
    ...['timeline', 'list'].flatMap(dash),
    row('webm', 'empty', empty, whole, /chunk-stream0-0*3\.webm$/, 'index.mpd'),
    row('webm', 'half', half, whole, /chunk-stream0-0*3\.webm$/, 'index.mpd'),
    row('webm', 'cut off', cutOff, whole, /chunk-stream0-0*3\.webm$/, 'index.mpd'),
    row('ranges', 'cut off', cutOff, /./, /index-stream0\.mp4$/, 'index.mpd'),
    // Playlists and manifests.
    row('ts', 'a playlist cut off', cutOff, CUT, /m3u8$/),
    row('ts', 'a playlist cut behind a line, of a finished stream', instead(linesEnded(8)), CUT, /m3u8$/),
    row('ts', 'a playlist cut behind a length', instead(linesEnded(7)), CUT, /m3u8$/),
    row('ts', 'a playlist cut in its head', instead(lines(0, 2)), CUT, /m3u8$/),
    row('ts', 'a playlist closed behind a line', closed(linesEnded(8)), CUT, /m3u8$/),
    row('ts', 'a playlist of a stream that goes on', instead(live), /^live stream$/, /m3u8$/),
    row(
      'ts',
      'a live playlist without its last line feed',
      instead((b) => trimmed(live(b))),
      /^live stream$/,
      /m3u8$/,
    ),
    row('renditions', 'a master cut off', instead(lines(0, -3)), CUT, /master\.m3u8$/, 'master.m3u8'),
    row('renditions', 'a rendition cut off', half, CUT, /1\.m3u8$/, 'master.m3u8'),
    row('number', 'a manifest without its last tag', instead(lines(0, -2)), CUT, /mpd$/, 'index.mpd'),
    row('number', 'a manifest that loses its connection', cutOff, CUT, /mpd$/, 'index.mpd'),
  ];
}

/** As of a server that adds segments: neither a type nor an end. */
function live(bytes: Buffer): Buffer {
  const kept = bytes.toString().replace(/#EXT-X-(PLAYLIST-TYPE:VOD|ENDLIST)\n/g, '');
  return Buffer.from(kept);
}

function trimmed(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString().trim());
}
