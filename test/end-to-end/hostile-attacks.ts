/**
 * What one key may try to stop the others with (third-look.md section 4, issue 36): what lies at a
 * stranger's server, and what is submitted. For the counts and for the figures.
 */
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder, cachedMedia } from 'soundpost-testing/media-cache';
import { ByteWriter } from '../../packages/media/src/byte-file.ts';
import { OggPageWriter } from '../../packages/media/src/ogg/pages.ts';
import { box, FTYP, words } from '../../packages/media/test/sparse/mp4-boxes.ts';

export interface Attack {
  /** By path at the stranger's server. */
  readonly bodies: ReadonlyMap<string, Buffer>;
  /** What is submitted, again and again. @param origin of the server */
  readonly submission: (origin: string) => object;
  /** How one of them ends; undefined: it runs for long, or completes. */
  readonly ends?: { readonly code: string; readonly details: RegExp };
  /** It is refused at once, with a sentence that says so. */
  readonly refused?: RegExp;
}

/** As long as a source may be. */
const LONGEST_SECONDS = 6 * 3600 - 1;

/** A header of fMP4. @param padBytes of it that say nothing */
function header(tracks: number, padBytes = 0): Buffer {
  const stsd = box('stsd', words(0, 1), box('mp4a', Buffer.alloc(28)));
  const mdhd = box('mdhd', words(0, 0, 0, 48_000, 0, 0));
  const hdlr = box('hdlr', words(0, 0), Buffer.from('soun'), Buffer.alloc(13));
  const media = box('mdia', mdhd, hdlr, box('minf', box('stbl', stsd)));
  const each = Array.from({ length: tracks }, (_, nth) => nth + 1);
  const traks = each.map((id) => box('trak', box('tkhd', words(1, 0, 0, id), Buffer.alloc(68)), media));
  const trexs = each.map((id) => box('trex', words(0, id, 1, 1024, 0, 0)));
  const mvhd = box('mvhd', words(0, 0, 0, 1000), Buffer.alloc(80));
  const pad = box('udta', Buffer.alloc(padBytes));
  return Buffer.concat([FTYP, box('moov', mvhd, ...traks, box('mvex', ...trexs), pad)]);
}

const FRAGMENT = Buffer.concat([
  box('moof', box('traf', box('tfhd', words(0, 1)), box('tfdt', words(0, 0)), box('trun', words(0, 2)))),
  box('mdat', Buffer.alloc(8)),
]);

const playlist = (lines: readonly string[]): Buffer =>
  Buffer.from(['#EXTM3U', '#EXT-X-TARGETDURATION:2', ...lines, '#EXT-X-ENDLIST', ''].join('\n'));
const times = <T>(count: number, of: (nth: number) => T): T[] =>
  Array.from({ length: count }, (_, nth) => of(nth));
const bodies = (of: Readonly<Record<string, Buffer>>): ReadonlyMap<string, Buffer> =>
  new Map(Object.entries(of));
const from = (origin: string, path: string) => ({ type: 'url', url: `${origin}${path}` });
/** Each with a cut of its own, so that none is another's copy. */
const eight = (format: string, more: object = {}): object[] =>
  times(8, (nth) => ({ name: `o${nth}`, format, start: nth, ...more }));
const job =
  (path: string, outputs: object[] = [{ name: 'one', format: 'mp3' }]) =>
  (origin: string): object => ({ source: from(origin, path), outputs });

/** Segments of `segment`, each behind a line that names one of so many headers. */
const behindMaps = (segments: number, map: (nth: number) => string, segment: string): Buffer =>
  playlist(times(segments, (nth) => `#EXT-X-MAP:URI="${map(nth)}"\n#EXTINF:0.1,\n${segment}`));

/** About 7.5 MB. */
function master(renditions: number): Buffer {
  const lines = times(
    renditions,
    (nth) =>
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${nth}",LANGUAGE="en",URI="${nth}.m3u8?${'x'.repeat(30)}"`,
  );
  return Buffer.from(
    ['#EXTM3U', ...lines, '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"', 'pictures.m3u8', ''].join('\n'),
  );
}

function manifest(sets: number): Buffer {
  const set =
    '<AdaptationSet contentType="audio" lang="en"><Representation id="1" bandwidth="1"/></AdaptationSet>';
  return Buffer.from(
    `<MPD type="static" mediaPresentationDuration="PT4S"><Period>${set.repeat(sets)}</Period></MPD>`,
  );
}

/** Most of it is its index: a chunk for each sample, in turns with pictures. */
function film(chunks: number): Buffer {
  const table = (type: string, head: Buffer, of: (nth: number) => number): Buffer => {
    const rows = Buffer.alloc(4 * chunks);
    for (let nth = 0; nth < chunks; nth += 1) rows.writeUInt32BE(of(nth), 4 * nth);
    return box(type, head, rows);
  };
  const trak = (id: number, handler: string, format: string, firstAt: number): Buffer => {
    const tables = [
      box('stsd', words(0, 1), box(format, Buffer.alloc(28))),
      box('stts', words(0, 1, chunks, 1024)),
      box('stsc', words(0, 1, 1, 1, 1)),
      table('stsz', words(0, 0, chunks), () => 1),
      table('stco', words(0, chunks), (nth) => firstAt + 8 * nth),
    ];
    const hdlr = box('hdlr', words(0, 0), Buffer.from(handler), Buffer.alloc(13));
    const mdhd = box('mdhd', words(0, 0, 0, 48_000, 0, 0));
    const media = box('mdia', mdhd, hdlr, box('minf', box('stbl', ...tables)));
    return box('trak', box('tkhd', words(1, 0, 0, id), Buffer.alloc(68)), media);
  };
  const moov = (at: number) => box('moov', trak(1, 'soun', 'mp4a', at), trak(2, 'vide', 'avc1', at + 4));
  const soundAt = FTYP.length + moov(0).length + 8;
  return Buffer.concat([FTYP, moov(soundAt), box('mdat', Buffer.alloc(8 * chunks))]);
}

/** Silence, by the system's ffmpeg: the longer, the smaller for what it costs. */
async function silence(name: string, seconds: number, encoder: readonly string[]): Promise<Buffer> {
  const source = ['-f', 'lavfi', '-i', 'anullsrc=r=8000:cl=mono', '-t', String(seconds)];
  return readFile(await cachedMedia(name, [...source, ...encoder]));
}

/** Ogg Opus, in the form of phones, whose packets of 20 ms have a byte: 1,000,000 in six hours. */
async function shortestPackets(seconds: number): Promise<Buffer> {
  const folder = await cachedFolder(['shortest packets', seconds], async (place) => {
    await using file = await open(join(place, 'note.opus'), 'w');
    const out = new OggPageWriter(new ByteWriter(file), { serial: 1, sequence: 0 });
    const head = Buffer.alloc(19);
    head.write('OpusHead\x01\x01', 'latin1');
    head.writeUInt32LE(16_000, 12);
    for (const packet of [head, Buffer.concat([Buffer.from('OpusTags'), Buffer.alloc(8)])]) {
      await out.packet(packet, 0);
      await out.endPage();
    }
    const frame = Buffer.of(0x48);
    for (let nth = 1; nth <= seconds * 50; nth += 1) await out.packet(frame, nth * 960);
    await out.end();
  });
  return readFile(join(folder, 'note.opus'));
}

const FAT = {
  url: 'https://bucket.example.com/a',
  headers: Object.fromEntries(times(20, (nth) => [`x-ms-meta-${nth}`, 'x'.repeat(1_000)])),
};

/** By what they are called. Each is made when it is asked for: some take a second. */
type Attacks = Readonly<Record<string, () => Promise<Attack>>>;

/** @param share of what third-look.md had, or what a limit allows: 1, or less where only counts matter */
export function attacksOf(share: number): Attacks {
  const most = (count: number): number => Math.ceil(count * share);
  const hours = (): Promise<Buffer> =>
    silence('hours.flac', most(LONGEST_SECONDS), ['-c:a', 'flac', '-compression_level', '0']);
  return {
    'headers of 3,500 tracks in turns': async () => ({
      bodies: bodies({
        '/tracks.m3u8': behindMaps(most(9_000), (nth) => `/tracks-${nth % 2}.mp4`, '/8.m4s'),
        '/tracks-0.mp4': header(3_500),
        '/tracks-1.mp4': header(3_500, 8),
        '/8.m4s': FRAGMENT,
      }),
      submission: job('/tracks.m3u8'),
      ends: { code: 'INVALID_VIDEO', details: /3500 tracks, which is more than 64/ },
    }),
    'headers of a megabyte in turns': async () => ({
      bodies: bodies({
        '/large.m3u8': behindMaps(most(2_000), (nth) => `/large-${nth % 40}.mp4`, '/fragment.m4s'),
        ...Object.fromEntries(times(40, (nth) => [`/large-${nth}.mp4`, header(64, 1_000_000 + nth)])),
        '/fragment.m4s': FRAGMENT,
      }),
      submission: job('/large.m3u8'),
    }),
    '70,000 renditions': async () => ({
      bodies: bodies({ '/master.m3u8': master(most(70_000)) }),
      submission: job('/master.m3u8', eight('mp3')),
      ends: { code: 'DOWNLOAD_FAILED', details: /404/ },
    }),
    '10,000 long addresses': async () => ({
      bodies: bodies({
        '/long.m3u8': playlist(times(most(10_000), (nth) => `#EXTINF:2,\n/${'l'.repeat(780)}${nth}.ts`)),
      }),
      submission: job('/long.m3u8'),
      ends: { code: 'DOWNLOAD_FAILED', details: /404/ },
    }),
    '99,999 empty boxes': async () => ({
      bodies: bodies({
        '/boxes.m3u8': behindMaps(most(9_000), () => '/plain.mp4', '/boxes.m4s'),
        '/plain.mp4': header(1),
        '/boxes.m4s': Buffer.concat(times(99_999, () => box('free'))),
      }),
      submission: job('/boxes.m3u8'),
      ends: { code: 'INVALID_VIDEO', details: /not readable fragmented MP4/ },
    }),
    'a file of 99,999 empty boxes': async () => ({
      bodies: bodies({ '/boxes.mp4': Buffer.concat([FTYP, ...times(most(99_999), () => box('free'))]) }),
      submission: job('/boxes.mp4'),
      ends: { code: 'INVALID_VIDEO', details: /corrupt or not supported/ },
    }),
    'a manifest of 70,000 sets': async () => ({
      bodies: bodies({ '/manifest.mpd': manifest(most(70_000)) }),
      submission: job('/manifest.mpd', eight('mp3')),
      ends: { code: 'INVALID_VIDEO', details: /does not say where/ },
    }),
    'a header for each segment': async () => ({
      bodies: bodies({
        '/maps.m3u8': behindMaps(9_999, (nth) => `/map-${nth}`, '/fragment.m4s'),
        ...Object.fromEntries(times(9_999, (nth) => [`/map-${nth}`, header(1)])),
        '/fragment.m4s': FRAGMENT,
      }),
      submission: job('/maps.m3u8'),
    }),
    'a film that is an index': async () => ({
      bodies: bodies({ '/film.mp4': film(most(1_000_000)) }),
      submission: job('/film.mp4'),
    }),
    'fat records': async () => ({
      bodies: bodies({}),
      submission: (origin) => ({
        source: from(origin, '/none.mp4'),
        outputs: eight('mp3', { destination: FAT }),
      }),
      refused: /64 KiB|8 KiB/,
    }),
    'records as fat as they may be': async () => ({
      bodies: bodies({}),
      submission: (origin) => ({
        source: from(origin, '/none.mp4'),
        outputs: times(29, (nth) => ({
          name: `o${nth}`,
          format: 'mp3',
          destination: { url: `${origin}/${'x'.repeat(1_900)}` },
        })),
      }),
      ends: { code: 'DOWNLOAD_FAILED', details: /404/ },
    }),
    'hours of silence': async () => ({
      bodies: bodies({ '/hours.flac': await hours() }),
      submission: job('/hours.flac', eight('mp3')),
    }),
    'waveforms of hours': async () => ({
      bodies: bodies({ '/hours.flac': await hours() }),
      submission: job('/hours.flac', [
        { name: 'sound', format: 'wav' },
        ...eight('waveform', { pixelsPerSecond: 100 }),
      ]),
    }),
    'voice notes of hours in the shortest packets': async () => ({
      bodies: bodies({
        '/note.opus': await shortestPackets(most(LONGEST_SECONDS)),
      }),
      submission: job('/note.opus', [{ name: 'one', format: 'voice' }]),
    }),
    'seven transcripts of a track': async () => ({
      bodies: bodies({ '/hours.flac': await hours() }),
      submission: job('/hours.flac', [
        { name: 'sound', format: 'opus' },
        ...times(7, (nth) => ({ name: `words${nth}`, format: 'transcript' })),
      ]),
    }),
  };
}

/** What a stranger, or a gateway that is none of ours, posts to `/hooks/gateway` again and again. */
export interface EventFlood {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Of the first one, and once the address has shown too many wrong tokens or signatures. */
  readonly statuses: readonly [first: number, later: number];
}

/** @param token GATEWAY_EVENTS_TOKEN */
export function eventFloods(token: string): Readonly<Record<string, EventFlood>> {
  const report = (data: readonly object[]): string => JSON.stringify({ event: 'messages.update', data });
  const from = { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.77' };
  const signed = { 'webhook-id': 'e', 'webhook-timestamp': '1', 'webhook-signature': 'v1,AAAA' };
  const bearer = (shown: string) => ({ ...from, authorization: `Bearer ${shown}` });
  // As long as a body may be, with almost as many values.
  const most = report(times(45_000, () => ({}))).padEnd(256 * 1024);
  return {
    'status events with a wrong token': { headers: bearer('wrong'), body: most, statuses: [401, 429] },
    'status events with a wrong signature': {
      headers: { ...from, ...signed },
      body: most,
      statuses: [401, 429],
    },
    'status events of more updates than are taken': {
      headers: bearer(token),
      body: most,
      statuses: [204, 204],
    },
    'status events of a thousand updates': {
      headers: bearer(token),
      body: report(times(1_000, (nth) => ({ keyId: `theirs-${nth}`, status: 'READ' }))),
      statuses: [204, 204],
    },
  };
}
