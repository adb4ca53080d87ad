/**
 * A copied, an encoded and a trimmed output of one file have the same clock (decisions A2a), in each
 * container and with each codec that is copied.
 */
import { rowsOfRun } from 'soundpost-testing/by-run';
import { extract } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';

const folder = mediaFolder();
const SECONDS = 5.3;
/**
 * Of AAC at 44.1 kHz, the longest but FLAC's: where a decoder ends within one is its own affair, and
 * ffmpeg 5.1 counts a copied FLAC to the start of its last packet.
 */
const packetSeconds = (encoder: string) => (encoder === 'flac' ? 4608 : 1024) / 44_100;
const SOUND = ['-f', 'lavfi', '-i', `sine=500:r=44100:d=${SECONDS}`];
const pictures = (encoder: string) => [
  ...['-f', 'lavfi', '-i', `testsrc2=s=64x64:r=25:d=${SECONDS}`, '-c:v', encoder],
];

/** Of those with pictures, their encoder. */
const VIDEO: Readonly<Record<string, string>> = {
  ...{ mp4: 'mpeg4', mov: 'mpeg4', mkv: 'mpeg4', ts: 'mpeg2video', mpg: 'mpeg2video' },
  ...{ avi: 'mpeg4', flv: 'flv', wmv: 'wmv2', nut: 'mpeg4' },
};

type Row = readonly [container: string, encoder: string, format: string];
const rows: readonly Row[] = [
  ...['mp4', 'mov', 'm4a', 'mkv', 'ts', 'flv', 'nut', 'aac'].map((name): Row => [name, 'aac', 'm4a']),
  ...['mkv', 'ts', 'avi', 'flv', 'aac'].map((name): Row => [name, 'aac', 'aac']),
  ...['mp4', 'ts', 'mpg', 'avi', 'flv', 'wmv', 'nut', 'mp3'].map((name): Row => [name, 'libmp3lame', 'mp3']),
  ...['mp4', 'mkv', 'ogg', 'flac'].map((name): Row => [name, 'flac', 'flac']),
  ...['mp4', 'mkv', 'webm', 'ts', 'ogg'].map((name): Row => [name, 'libopus', 'opus']),
  ...['mkv', 'webm', 'ogg'].map((name): Row => [name, 'libvorbis', 'ogg']),
  ...['mov', 'mkv', 'avi', 'wav', 'w64', 'caf'].map((name): Row => [name, 'pcm_s16le', 'wav']),
];
const CORE = ['mp4 aac m4a', 'mkv flac flac', 'ts libmp3lame mp3'];

it.each(rowsOfRun(rows, (row) => CORE.includes(row.join(' '))))('%s with %s, as %s', async (...row) => {
  const [container, encoder, format] = row;
  const video = VIDEO[container];
  const options = [...(video === undefined ? [] : pictures(video)), '-c:a', encoder, '-strict', '-2'];
  const file = await cachedMedia(`copied.${container}`, [...SOUND, ...options]);
  const made = [
    await extract(file, folder.at(`copied.${format}`), { format }),
    await extract(file, folder.at(`encoded.${format}`), { format, copy: 'never' }),
    await extract(file, folder.at('encoded.wav'), { format: 'wav', copy: 'never' }),
    await extract(file, folder.at(`cut.${format}`), { format, start: 1, end: 3 }),
  ];
  expect(made.map(({ output }) => output.copied)).toEqual([true, false, false, false]);
  const ends = made.map(({ sourceSeconds }) => sourceSeconds);
  expect(Math.max(...ends) - Math.min(...ends), ends.join(', ')).toBeLessThan(packetSeconds(encoder));
});
