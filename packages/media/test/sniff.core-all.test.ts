import { readFile } from 'node:fs/promises';
import { currentRun } from 'soundpost-testing/by-run';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { inspect } from 'soundpost-testing/oracle';
import { describe, expect, it } from 'vitest';
import { searchFrames } from '../src/frame-search.ts';
import { bytesSource, SNIFF_BYTES, sniffContainer } from '../src/sniff.ts';

const sniffed = async (bytes: Uint8Array) => (await sniffContainer(bytesSource(bytes)))?.name;
const bytesOf = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex');

/** As many frames of a size as a second has, each with a header and nothing else. */
function frames(hex: string, sizeBytes: number, count = 12): Buffer {
  const header = bytesOf(hex);
  const frame = Buffer.concat([header, Buffer.alloc(sizeBytes - header.length, 0x2e)]);
  return Buffer.concat(Array.from({ length: count }, () => frame));
}

/** Frames of 16-bit mono at 44.1 kHz, numbered from 7, with the right CRC-8. */
const flacFrames = Buffer.concat(
  ['0780', '08ad', '09aa', '0aa3'].map((numberAndCrc) => frames(`fff8c908${numberAndCrc}`, 700, 1)),
);

const box = (type: string, sizeBytes = 64) => {
  const bytes = Buffer.alloc(sizeBytes, 0x2e);
  bytes.writeUInt32BE(sizeBytes);
  bytes.write(type, 4, 'latin1');
  return bytes;
};

function id3(sizeBytes: number): Buffer {
  const size = [21, 14, 7, 0].map((shift) => (sizeBytes >> shift) & 0x7f);
  return Buffer.concat([
    Buffer.from('ID3\x03\0\0', 'latin1'),
    Buffer.from(size),
    Buffer.alloc(sizeBytes, 0x11),
  ]);
}

function apeTag(sizeBytes: number): Buffer {
  const tag = Buffer.alloc(32 + sizeBytes, 0x11);
  tag.write('APETAGEX');
  tag.writeUInt32LE(sizeBytes, 12);
  return tag;
}

/** An item of eight bytes, and a footer without a header. */
const apeFooter = Buffer.concat([Buffer.alloc(8, 0x11), apeTag(0)]);
apeFooter.writeUInt32LE(40, 8 + 12);

const flvTag = Buffer.concat([bytesOf('0800006400000000000000'), Buffer.alloc(100), bytesOf('0000006f')]);
const packet = (sizeBytes: number) => frames('47 0100 10', sizeBytes);
const mp3 = frames('fffb9064', 417);
const junk = Buffer.from(Array.from({ length: 5000 }, (_, at) => ((at * 2_654_435_761) >>> 13) & 0xff));

describe.runIf(currentRun === 'core')(
  'frames, packets and pages are found at any place, by several in a row',
  () => {
    it.each([
      ['mp3', 'layer III', mp3],
      ['mp3', 'layer II', frames('fffda404', 576)],
      ['mp3', 'layer I', frames('ffffc404', 384)],
      ['aac', 'ADTS', frames('fff15080 0c9ffc', 100)],
      ['latm', 'LOAS', frames('56e061', 100)],
      ['ac3', 'AC-3', frames('0b77 0000 08 40', 256)],
      ['eac3', 'E-AC-3', frames('0b77 007f 30 80', 256)],
      ['dts', 'words of 16 bits', frames('7ffe8001 fc3c3ff0', 1024)],
      ['dts', 'the other byte order', frames('fe7f0180 3cfcf03f', 1024)],
      ['dts', 'words of 14 bits', frames('1fffe800 07f1003f3c00', 1170)],
      ['truehd', 'access units', frames('a032ffd8 f8726fba', 100)],
      ['mlp', 'access units', frames('a032ffd8 f8726fbb', 100)],
      ['dv', 'sequences', frames(`1f0700${'00'.repeat(77)}3f0700`, 12_000, 4)],
      ['mpegts', 'packets', packet(188)],
      ['mpegts', 'packets with a time', packet(192)],
      ['mpegts', 'packets with error correction', packet(204)],
      ['mpeg', 'packs and PES packets', frames('000001ba 440000000000000000f8 000001c0 07ec', 2048)],
      ['mpeg', 'PES packets alone', frames('000001c0 07ec', 2034)],
      ['ogg', 'pages', frames(`4f67675300 02 ${'00'.repeat(20)} 01 49`, 101)],
      ['mxf', 'partitions', frames('060e2b34020501010d01020101020400 54', 101)],
      ['flv', 'tags', Buffer.concat(Array.from({ length: 9 }, () => flvTag))],
      ['flac', 'frames', flacFrames],
    ])('%s: %s', async (name, _, bytes) => {
      const damaged = Buffer.from(Buffer.concat([bytes, bytes]));
      damaged[0] = (damaged[0] ?? 0) ^ 0x55;
      expect(await sniffed(bytes)).toBe(name);
      expect(await sniffed(Buffer.concat([junk, bytes])), 'behind junk').toBe(name);
      expect(await sniffed(Buffer.concat([Buffer.alloc(3000), bytes])), 'behind zeros').toBe(name);
      expect(await sniffed(Buffer.concat([apeTag(3000), bytes])), 'behind a tag').toBe(name);
      expect(await sniffed(damaged), 'damaged').toBe(name);
      expect(await sniffed(bytes.subarray(5)), 'from the middle').toBe(name);
    });

    it.each(['styp', 'sidx', 'uuid', 'emsg', 'udta', 'free', '\x01\x02\x03\x04'])(
      'mp4 behind %j',
      async (first) => {
        const file = Buffer.concat([box(first), box('ftyp'), box('moov')]);
        expect(await sniffed(file)).toBe('mp4');
      },
    );

    it.each([
      ['FLAC', 'flac', Buffer.from('fLaC\0\0\0\x22', 'latin1')],
      ['ADTS', 'aac', frames('fff15080 0c9ffc', 100)],
      ['MP3', 'mp3', mp3],
      ['an ICY header and MP3', 'mp3', Buffer.concat([Buffer.from('ICY 200 OK\r\nicy-br:128\r\n\r\n'), mp3])],
    ])('%s behind several tags of any length', async (_, name, bytes) => {
      const tags = [id3(SNIFF_BYTES * 3), apeTag(70_000), id3(10)];
      expect(await sniffed(Buffer.concat([...tags, bytes]))).toBe(name);
    });

    it.each([
      ['alone', Buffer.alloc(0)],
      ['before ID3v1', Buffer.from('TAG'.padEnd(128, '\0'))],
      ['before APEv2 and ID3v1', Buffer.concat([apeFooter, Buffer.from('TAG'.padEnd(128, '\0'))])],
    ])('a file that is one frame, %s', async (_, tags) => {
      expect(await sniffed(Buffer.concat([mp3.subarray(0, 417), tags]))).toBe('mp3');
    });

    it('asks no more often than eight times for each byte, whatever is in the window', () => {
      const worst = ['00', 'ff', '56', 'fff950', 'fffb9064', '0b77', '000001c00001', '08000000', '47403030'];
      for (const hex of worst) {
        const window = Buffer.alloc(SNIFF_BYTES, bytesOf(hex));
        expect(searchFrames(window, false).tests / window.length, hex).toBeLessThan(8);
      }
    });
  },
);

describe.runIf(currentRun === 'all')('what ffmpeg writes is known as ffmpeg knows it', () => {
  it.each([
    { name: 'mp4', demuxer: 'mov', file: 'a.mp4', options: [] },
    { name: 'm4a', demuxer: 'mov', file: 'a.m4a', options: [] },
    { name: 'mov', demuxer: 'mov', file: 'a.mov', options: [] },
    { name: '3gp', demuxer: 'mov', file: 'a.3gp', options: ['-c:a', 'aac', '-ar', '8000'] },
    { name: 'mkv', demuxer: 'matroska', file: 'a.mkv', options: [] },
    { name: 'webm', demuxer: 'matroska', file: 'a.webm', options: [] },
    { name: 'flac', demuxer: 'flac', file: 'a.flac', options: [] },
    { name: 'wav', demuxer: 'wav', file: 'a.wav', options: [] },
    { name: 'wav', demuxer: 'wav', file: 'rf64.wav', options: ['-rf64', 'always'] },
    { name: 'w64', demuxer: 'w64', file: 'a.w64', options: [] },
    { name: 'avi', demuxer: 'avi', file: 'a.avi', options: [] },
    { name: 'aiff', demuxer: 'aiff', file: 'a.aiff', options: [] },
    { name: 'caf', demuxer: 'caf', file: 'a.caf', options: [] },
    { name: 'flv', demuxer: 'flv', file: 'a.flv', options: [] },
    { name: 'asf', demuxer: 'asf', file: 'a.wma', options: [] },
    { name: 'au', demuxer: 'au', file: 'a.au', options: [] },
    { name: 'wavpack', demuxer: 'wv', file: 'a.wv', options: [] },
    { name: 'tta', demuxer: 'tta', file: 'a.tta', options: [] },
    { name: 'mp3', demuxer: 'mp3', file: 'a.mp3', options: [] },
    { name: 'mp3', demuxer: 'mp3', file: 'low.mp3', options: ['-id3v2_version', '0', '-ar', '8000'] },
  ])('$file is $name', async ({ name, demuxer, file, options }) => {
    const path = await cachedMedia(file, [
      ...['-f', 'lavfi', '-i', 'anoisesrc=d=2:r=44100:a=0.2', ...options],
    ]);
    expect(await sniffed(await readFile(path))).toBe(name);
    // ffmpeg itself, left to guess, comes to the same demuxer.
    expect((await inspect(path)).format.format_name.split(',')).toContain(demuxer);
  });
});

describe.runIf(currentRun === 'core')('what is no media', () => {
  it.each([
    ['nothing', ''],
    ['text', 'Dear diary, today I wrote no music at all.'],
    ['text with a G at each packet', 'G10 '.padEnd(188).repeat(20)],
    ['an HLS playlist', '#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n/etc/passwd\n#EXT-X-ENDLIST\n'],
    ['an HLS playlist with frames behind it', `#EXTM3U\n/etc/passwd\n${mp3.toString('latin1')}`],
    ['an ffconcat list', "ffconcat version 1.0\nfile '/etc/passwd'\n"],
    ['a DASH manifest', '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"></MPD>'],
    ['subtitles', '1\n00:00:01,000 --> 00:00:02,000\nHello\n'],
    ['a PNG', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'],
    ['a JPEG', '\xff\xd8\xff\xe0\0\x10JFIF\0'],
    ['a ZIP', 'PK\x03\x04\x14\0\0\0'],
    ['UTF-16 text', '\xff\xfeH\0e\0l\0l\0o\0'],
    ['one MPEG sync word in noise', `\xff\xfb\x90\x64${'x'.repeat(1000)}`],
    ['noise', junk.toString('latin1')],
    ['zeros', '\0'.repeat(5000)],
    ['a tag alone', id3(300).toString('latin1')],
    ['a tag that is longer than the file', 'ID3\x03\0\0\x7f\x7f\x7f\x7f more'],
  ])('%s', async (_, bytes) => {
    expect(await sniffed(Buffer.from(bytes, 'latin1'))).toBeUndefined();
  });
});
