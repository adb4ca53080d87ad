import { readFile } from 'node:fs/promises';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { inspect } from 'soundpost-testing/oracle';
import { describe, expect, it } from 'vitest';
import { SNIFF_BYTES, sniffContainer } from '../src/sniff.ts';

/** Two seconds of noise through a muxer of ffmpeg. */
function made(name: string, ...options: string[]): Promise<string> {
  return cachedMedia(name, ['-f', 'lavfi', '-i', 'anoisesrc=d=2:r=44100:a=0.2', ...options]);
}

const head = async (file: string) => (await readFile(file)).subarray(0, SNIFF_BYTES);

describe('a container is known by its first bytes', () => {
  it.each(
    rowsOfRun(
      [
        { name: 'mp4', demuxer: 'mov', file: 'a.mp4', options: [] },
        { name: 'm4a', demuxer: 'mov', file: 'a.m4a', options: [] },
        { name: 'mov', demuxer: 'mov', file: 'a.mov', options: [] },
        { name: '3gp', demuxer: 'mov', file: 'a.3gp', options: ['-c:a', 'aac', '-ar', '8000'] },
        { name: 'mkv', demuxer: 'matroska', file: 'a.mkv', options: [] },
        { name: 'webm', demuxer: 'matroska', file: 'a.webm', options: [] },
        { name: 'ogg', demuxer: 'ogg', file: 'a.opus', options: [] },
        { name: 'flac', demuxer: 'flac', file: 'a.flac', options: [] },
        { name: 'wav', demuxer: 'wav', file: 'a.wav', options: [] },
        { name: 'wav', demuxer: 'wav', file: 'rf64.wav', options: ['-rf64', 'always'] },
        { name: 'w64', demuxer: 'w64', file: 'a.w64', options: [] },
        { name: 'avi', demuxer: 'avi', file: 'a.avi', options: [] },
        { name: 'aiff', demuxer: 'aiff', file: 'a.aiff', options: [] },
        { name: 'caf', demuxer: 'caf', file: 'a.caf', options: [] },
        { name: 'flv', demuxer: 'flv', file: 'a.flv', options: [] },
        { name: 'asf', demuxer: 'asf', file: 'a.wma', options: [] },
        { name: 'mpeg', demuxer: 'mpeg', file: 'a.mpg', options: [] },
        { name: 'mpegts', demuxer: 'mpegts', file: 'a.ts', options: [] },
        { name: 'mpegts', demuxer: 'mpegts', file: 'a.m2ts', options: ['-mpegts_m2ts_mode', '1'] },
        { name: 'au', demuxer: 'au', file: 'a.au', options: [] },
        { name: 'wavpack', demuxer: 'wv', file: 'a.wv', options: [] },
        { name: 'tta', demuxer: 'tta', file: 'a.tta', options: [] },
        { name: 'ac3', demuxer: 'ac3', file: 'a.ac3', options: [] },
        { name: 'eac3', demuxer: 'eac3', file: 'a.eac3', options: [] },
        { name: 'aac', demuxer: 'aac', file: 'a.aac', options: [] },
        { name: 'latm', demuxer: 'loas', file: 'a.latm', options: [] },
        { name: 'mxf', demuxer: 'mxf', file: 'a.mxf', options: ['-f', 'mxf_opatom', '-ar', '48000'] },
        { name: 'mp3', demuxer: 'mp3', file: 'a.mp3', options: [] },
        {
          name: 'mp3',
          demuxer: 'mp3',
          file: 'bare.mp3',
          options: ['-id3v2_version', '0', '-write_xing', '0'],
        },
        { name: 'mp3', demuxer: 'mp3', file: 'low.mp3', options: ['-id3v2_version', '0', '-ar', '8000'] },
        { name: 'mp3', demuxer: 'mp3', file: 'layer2.mp2', options: [] },
      ],
      6,
    ),
  )('$file is $name', async ({ name, demuxer, file, options }) => {
    const path = await made(file, ...options);
    expect(sniffContainer(await head(path))).toMatchObject({ name, demuxer });
    // ffmpeg itself, left to guess, comes to the same demuxer.
    expect((await inspect(path)).format.format_name.split(',')).toContain(demuxer);
  });

  it.runIf(currentRun === 'core')('sees through an ID3 tag in front of ADTS', async () => {
    const tag = Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\x01\0', 'latin1'), Buffer.alloc(128)]);
    expect(sniffContainer(Buffer.concat([tag, await head(await made('tagged.aac'))]))?.name).toBe('aac');
  });

  it.runIf(currentRun === 'core')('takes a tag that is longer than the head for an MP3', () => {
    expect(sniffContainer(Buffer.from('ID3\x03\0\0\x7f\x7f\x7f\x7f more', 'latin1'))?.name).toBe('mp3');
  });
});

describe('what is no media', () => {
  it.runIf(currentRun === 'core').each([
    ['nothing', ''],
    ['text', 'Dear diary, today I wrote no music at all.'],
    ['an HLS playlist', '#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n/etc/passwd\n#EXT-X-ENDLIST\n'],
    ['an ffconcat list', "ffconcat version 1.0\nfile '/etc/passwd'\n"],
    ['a DASH manifest', '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"></MPD>'],
    ['subtitles', '1\n00:00:01,000 --> 00:00:02,000\nHello\n'],
    ['a PNG', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'],
    ['a JPEG', '\xff\xd8\xff\xe0\0\x10JFIF\0'],
    ['a ZIP', 'PK\x03\x04\x14\0\0\0'],
    ['UTF-16 text', '\xff\xfeH\0e\0l\0l\0o\0'],
    ['one MPEG sync word in noise', `\xff\xfb\x90\x64${'x'.repeat(1000)}`],
    ['zeros', '\0'.repeat(5000)],
  ])('%s', (_, bytes) => {
    expect(sniffContainer(Buffer.from(bytes, 'latin1'))).toBeUndefined();
  });
});
