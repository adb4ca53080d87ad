/** Playlists and manifests that nobody means well with. Each comes with how a job over it has to end. */

export interface HostileStream {
  readonly name: string;
  readonly text: string | Buffer;
  readonly code: 'DOWNLOAD_FAILED' | 'INVALID_VIDEO' | 'EXTRACTION_FAILED';
  readonly details: RegExp | string;
}

interface Surroundings {
  /** Of the server that may be asked. It redirects `/to/<address>` to that address, and has segments at `/good.ts` and `/good.mp4`. */
  readonly origin: string;
  /** `host:port` of one that may not. */
  readonly foreign: string;
  /** Absolute path of a playable file that nobody may read. */
  readonly canary: string;
}

const HEAD = ['#EXTM3U', '#EXT-X-TARGETDURATION:2'];
const hls = (...lines: readonly string[]): string => [...HEAD, ...lines, '#EXT-X-ENDLIST', ''].join('\n');
const mpd = (content: string, attributes = ''): string =>
  `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S" ${attributes}>${content}</MPD>`;
const period = (content: string, set = ''): string =>
  `<Period><AdaptationSet contentType="audio">${set}<Representation id="1" bandwidth="1">${content}</Representation></AdaptationSet></Period>`;
const template = (media: string, init = '/good.ts', rest = 'duration="2"'): string =>
  mpd(period(`<SegmentTemplate media="${escaped(media)}" initialization="${escaped(init)}" ${rest}/>`));

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('$', '$$$$');
}

/** Where a stream may name an address. */
const places: Readonly<Record<string, (address: string) => string>> = {
  segment: (address) => hls('#EXTINF:2,', address),
  'second segment': (address) => hls('#EXTINF:2,', '/good.ts', '#EXTINF:2,', address),
  key: (address) => hls(`#EXT-X-KEY:METHOD=AES-128,URI="${address}"`, '#EXTINF:2,', '/good.ts'),
  map: (address) => hls(`#EXT-X-MAP:URI="${address}"`, '#EXTINF:2,', '/good.mp4'),
  variant: (address) => ['#EXTM3U', '#EXT-X-STREAM-INF:BANDWIDTH=1', address].join('\n'),
  rendition: (address) =>
    [
      '#EXTM3U',
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",URI="${address}"`,
      '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"',
      '/media.m3u8',
    ].join('\n'),
  'redirect of a segment': (address) => hls('#EXTINF:2,', `/to/${encodeURIComponent(address)}`),
  'redirect of a key': (address) =>
    hls(`#EXT-X-KEY:METHOD=AES-128,URI="/to/${encodeURIComponent(address)}"`, ...['#EXTINF:2,', '/good.ts']),
  'redirect of a playlist': (address) =>
    ['#EXTM3U', '#EXT-X-STREAM-INF:BANDWIDTH=1', `/to/${encodeURIComponent(address)}`].join('\n'),
  BaseURL: (address) => mpd(period(`<BaseURL>${escaped(address)}</BaseURL>`)),
  'template of segments': (address) => template(address),
  'template of a header': (address) => template('/good.mp4', address),
  SegmentURL: (address) =>
    mpd(period(`<SegmentList duration="2"><SegmentURL media="${escaped(address)}"/></SegmentList>`)),
};

const addresses = ({ origin, foreign, canary }: Surroundings): string[] => {
  const port = foreign.split(':').at(-1) ?? '';
  return [
    ...[`file://${canary}`, `file:${canary}`, `concat:/good.ts|${canary}`, `subfile:${canary}`],
    ...[
      'data:video/mp2t;base64,R0AAEA==',
      'pipe:0',
      `crypto:file://${canary}`,
      'ftp://127.0.0.1/a',
      'skd://key',
    ],
    ...[`http://${foreign}/a`, `//${foreign}/a`, `http://localhost:${port}/a`, `http://[::1]:${port}/a`],
    ...[`http://2130706433:${port}/a`, `http://0x7f.1:${port}/a`, `http://[::ffff:127.0.0.1]:${port}/a`],
    ...[
      'http://169.254.169.254/latest/meta-data',
      'http://10.0.0.1/a',
      'http://0.0.0.0/a',
      'https://100.64.0.1/a',
    ],
    ...[origin.replace('http://', 'http://user:word@'), `${origin}/${'a'.repeat(3_000)}`],
  ];
};

const WIDEVINE = 'urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed';

const NOT_ALLOWED = /^(the stream names an address that is not allowed|the address is not allowed: .*)$/;

/** Not for its addresses: what it says of itself, or how much. */
const others = (): Omit<HostileStream, 'name'>[] => {
  const many = (count: number, line: string): string => hls(`${line}\n`.repeat(count));
  const invalid = (text: string | Buffer, details: RegExp | string) => ({
    text,
    details,
    code: 'INVALID_VIDEO' as const,
  });
  const refused = (text: string | Buffer, details: RegExp | string) => ({
    text,
    details,
    code: 'EXTRACTION_FAILED' as const,
  });
  const encrypted = (text: string, by: string) =>
    invalid(text, `encrypted: the stream needs a key (${by}); use a copy that is not encrypted`);
  const notAllowed = (text: string) => ({ text, details: NOT_ALLOWED, code: 'DOWNLOAD_FAILED' as const });
  const cutOff = (text: string) => ({ text, details: /is incomplete/, code: 'DOWNLOAD_FAILED' as const });
  const good = ['#EXTINF:2,', '/good.ts'];
  const key = (attributes: string) => hls(`#EXT-X-KEY:${attributes}`, ...good);
  const tooMany = 'the stream has more than 10000 segments';
  const tooLong = /addresses of the stream have more than/;
  const timeline = (row: string) =>
    mpd(
      period(
        `<SegmentTemplate media="/$Time$" initialization="/good.ts"><SegmentTimeline>${row}</SegmentTimeline></SegmentTemplate>`,
      ),
    );
  return [
    refused([...HEAD, ...good].join('\n'), 'live stream'),
    refused([...HEAD, '#EXT-X-PLAYLIST-TYPE:EVENT', ...good].join('\n'), 'live stream'),
    refused(mpd(period('<BaseURL>/a</BaseURL>')).replace('static', 'dynamic'), 'live stream'),
    refused(timeline('<S d="1" r="-1"/>').replace('mediaPresentationDuration="PT4S"', ''), 'live stream'),
    encrypted(key('METHOD=SAMPLE-AES,URI="/good.ts"'), 'SAMPLE-AES'),
    encrypted(
      key('METHOD=SAMPLE-AES-CTR,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery"'),
      'FairPlay',
    ),
    encrypted(key('METHOD=AES-128,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery"'), 'FairPlay'),
    encrypted(key(`METHOD=SAMPLE-AES-CTR,URI="data:,",KEYFORMAT="${WIDEVINE}"`), 'Widevine'),
    encrypted(key('METHOD=SAMPLE-AES,URI="data:,",KEYFORMAT="com.microsoft.playready"'), 'PlayReady'),
    encrypted(key('URI="/good.ts"'), 'no METHOD'),
    encrypted(
      mpd(period('<ContentProtection schemeIdUri="urn:x"/><BaseURL>/a</BaseURL>')),
      'Common Encryption',
    ),
    encrypted(
      mpd(period('<BaseURL>/a</BaseURL>', `<ContentProtection schemeIdUri="${WIDEVINE.toUpperCase()}"/>`)),
      'Widevine',
    ),
    refused(hls('#EXT-X-DEFINE:NAME="a",VALUE="file:"', ...good), /variables/),
    refused(mpd('<Period xlink:href="http://127.0.0.1/period.xml"/>'), /several files/),
    refused(mpd('<Period><AdaptationSet contentType="text"/></Period>'), 'no audio stream'),
    invalid('#EXTM3U\n#EXTINF:100,A song\n/song.mp3\n', /not an HLS stream/),
    cutOff('#EXTM3U'),
    invalid(hls(), /no segments/),
    invalid(hls('/good.ts'), /no duration/),
    invalid(hls('#EXTINF:nonsense,', '/good.ts'), /no duration/),
    invalid(hls('#EXTINF:-1,', '/good.ts'), /no duration/),
    invalid(hls('#EXTINF:1e9,', '/good.ts'), /longer than/),
    invalid(hls('#EXTINF:Infinity,', '/good.ts'), /longer than/),
    invalid(many(10_001, good.join('\n')), tooMany),
    invalid(many(1_000, ['#EXTINF:30,', '/good.ts'].join('\n')), /longer than/),
    invalid(many(300_000, '#EXT-X-NOTHING'), /more than 125000 lines/),
    invalid(hls(...good, `#${'x'.repeat(9 * 1024 * 1024)}`), /larger than/),
    invalid(hls('#EXTINF:2,', '#EXT-X-BYTERANGE:0@0', '/good.ts'), /byte range/),
    invalid(hls('#EXTINF:2,', '#EXT-X-BYTERANGE:100', '/good.ts'), /byte range/),
    invalid(hls('#EXTINF:2,', '#EXT-X-BYTERANGE:99999999999999999999@0', '/good.ts'), /byte range/),
    {
      ...invalid(hls('#EXTINF:2,', '#EXT-X-BYTERANGE:100@999999', '/good.ts'), /requested part/),
      code: 'DOWNLOAD_FAILED',
    },
    invalid(key('METHOD=AES-128'), /no URI/),
    invalid(key('METHOD=AES-128,URI="/good.ts",IV=0xZZ'), /IV/),
    // Hours, where a pattern tries each way of sharing out the spaces.
    encrypted(key(`METHOD=${' '.repeat(1_000_000)}"`), 'no METHOD'),
    invalid(key('METHOD=AES-128,URI="/good.ts"'), /16 bytes/),
    invalid(key('METHOD=AES-128,URI="/key"'), /could not be decrypted/),
    invalid(hls('#EXT-X-KEY:METHOD=AES-128,URI="/key"', '#EXT-X-MAP:URI="/good.ts"', ...good), /needs an IV/),
    // Playlists in playlists.
    invalid(hls('#EXTINF:2,', '/media.m3u8'), /another playlist/),
    invalid(
      ['#EXTM3U', '#EXT-X-STREAM-INF:BANDWIDTH=1', '/master.m3u8'].join('\n'),
      /another master playlist/,
    ),
    invalid(['#EXTM3U', '#EXT-X-STREAM-INF:BANDWIDTH=1', '/good.ts'].join('\n'), /does not begin/),
    cutOff(['#EXTM3U', '#EXT-X-STREAM-INF:BANDWIDTH=1'].join('\n')),
    invalid(['#EXTM3U', '#EXT-X-STREAM-INF:BANDWIDTH=1', '#EXT-X-NOTHING'].join('\n'), /no address/),
    invalid(hls('#EXTINF:2,', '/page.html'), /a web page, not a media file/),
    invalid(hls('#EXTINF:2,', '/tags.mp3'), /known container/),
    invalid(hls('#EXT-X-MAP:URI="/page.html"', '#EXTINF:2,', '/good.mp4'), /a web page, not a media file/),
    invalid(mpd(period('<BaseURL>/media.m3u8</BaseURL>')), /a playlist, not a media file/),
    // Manifests.
    invalid(mpd(''), /no segments/),
    invalid(mpd(period('')), /does not say where/),
    cutOff('<MPD'),
    invalid('<MPD><Period></MPD>', /well-formed/),
    invalid('<MPD a="1></MPD>', /well-formed/),
    invalid(`<MPD>${'<a>'.repeat(100)}`, /well-formed/),
    invalid(`<MPD>${'<a/>'.repeat(300_000)}</MPD>`, /well-formed/),
    invalid(`<MPD ${'a'.repeat(5_000_000)}></MPD>`, /well-formed/),
    invalid(`<MPD a="${'&amp;'.repeat(1_000_000)}"/>`, /no segments|too much memory/),
    invalid(
      `<?xml version="1.0"?><!DOCTYPE MPD [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><MPD>&b;</MPD>`,
      /document type/,
    ),
    invalid('<!DOCTYPE MPD SYSTEM "file:///etc/passwd"><MPD/>', /document type/),
    invalid(template('/a', '/good.ts', 'duration="1" timescale="1000000"'), tooMany),
    invalid(template('/a', '/good.ts', 'duration="1" startNumber="1" endNumber="999999999"'), tooMany),
    invalid(template('/a', '/good.ts', 'duration="1" timescale="0"'), /timescale of 0/),
    invalid(template('/a', '/good.ts', 'duration="-1"'), /number of the manifest/),
    invalid(timeline('<S d="1" r="2147483647"/>'), tooMany),
    invalid(timeline('<S d="1" r="999999999999999"/>'), tooMany),
    invalid(timeline('<S d="0" r="5"/>'), /no length/),
    invalid(timeline('<S d="1"/>'.repeat(10_001)), tooMany),
    invalid(mpd(period('<SegmentTemplate media="/$Nothing$" duration="1"/>')), /template/),
    invalid(mpd(period('<SegmentTemplate media="/$constructor$" duration="1"/>')), /template/),
    invalid(mpd(period('<SegmentTemplate duration="1"/>')), /no address/),
    // What is written once and holds for many: gigabytes, were it written out for each.
    invalid(template(`/${'a'.repeat(8_000_000)}`, '/good.ts', 'duration="1" endNumber="10000"'), /too long/),
    invalid(
      template(`/${'$RepresentationID$'.repeat(200)}`, '/good.ts', 'duration="1" endNumber="10000"')
        .replaceAll('$$', '$')
        .replace('id="1"', `id="${'i'.repeat(4_000_000)}"`),
      /too long/,
    ),
    invalid(template(`/${'€'.repeat(2_000)}$Number$`, '/good.ts', 'duration="1" endNumber="10000"'), tooLong),
    notAllowed(
      mpd(
        period(
          `<BaseURL>/${'a'.repeat(4_000_000)}/</BaseURL><SegmentList duration="1">${'<SegmentURL media="a"/>'.repeat(10_000)}</SegmentList>`,
        ),
      ),
    ),
    invalid(
      mpd(
        `<BaseURL>/${'a'.repeat(4_000_000)}/</BaseURL>${'<Period><AdaptationSet contentType="audio"><Representation/></AdaptationSet></Period>'.repeat(10_000)}`,
      ),
      tooLong,
    ),
    invalid(
      mpd(
        `<Period>${'<SegmentBase/>'.repeat(110_000)}<AdaptationSet contentType="audio">${'<Representation/>'.repeat(110_000)}</AdaptationSet></Period>`,
      ),
      /does not say where|too much memory/,
    ),
    invalid(mpd('', Array.from({ length: 400_000 }, (_, nth) => `a${nth}=""`).join(' ')), /well-formed/),
    invalid(
      mpd(period('<SegmentList duration="1"><SegmentURL mediaRange="9-1"/></SegmentList>')),
      /byte range/,
    ),
    invalid(
      mpd(period(`<SegmentList duration="1">${'<SegmentURL/>'.repeat(10_001)}</SegmentList>`)),
      tooMany,
    ),
  ];
};

export function hostileStreams(around: Surroundings): HostileStream[] {
  const named = Object.entries(places).flatMap(([place, write]) =>
    addresses(around).map(
      (address): HostileStream => ({
        name: `${place}: ${address.slice(0, 60)}`,
        text: write(address),
        code: 'DOWNLOAD_FAILED',
        details: NOT_ALLOWED,
      }),
    ),
  );
  return [...named, ...others().map((other, nth) => ({ ...other, name: `${nth}: ${other.details}` }))];
}
