/** Tags, chapters and cover: kept where the format can hold them, gone when they are not wanted. */
import { stat, writeFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { type FormatName, formats } from '../../src/contract/formats.ts';
import { currentRun, rowsOfRun } from '../by-run.ts';
import { extract } from './extracting.ts';
import { decodedSeconds, ffmpeg, inspect } from './oracle.ts';
import { mediaFolder } from './sources.ts';

const folder = mediaFolder();
const TITLE = 'Größe = 5; #1 \\ "quoted"';
const formatNames = Object.keys(formats) as FormatName[];

beforeAll(async () => {
  await writeFile(
    folder.at('meta.txt'),
    [
      ';FFMETADATA1',
      'title=Größe \\= 5\\; \\#1 \\\\ "quoted"',
      'artist=Nobody',
      'comment=two\\\nlines',
      ...['[CHAPTER]', 'TIMEBASE=1/1000', 'START=0', 'END=1500', 'title=First'],
      ...['[CHAPTER]', 'TIMEBASE=1/1000', 'START=1500', 'END=4000', 'title=Second = last'],
    ].join('\n'),
  );
  await ffmpeg(
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    'testsrc2=s=300x200',
    '-frames:v',
    '1',
    folder.at('cover.png'),
  );
  await ffmpeg('-v', 'error', '-i', folder.at('cover.png'), folder.at('cover.jpg'));
  const withCover = (image: string) => ['-i', folder.at(image), '-map', '0', '-map', '2', '-c:v:0', 'copy'];
  const speech = await folder.source('music.wav');
  const inputs = ['-v', 'error', '-i', speech, '-f', 'ffmetadata', '-i', folder.at('meta.txt')];
  const tagged = ['-map_metadata', '1', '-map_chapters', '1'];
  const attached = ['-disposition:v:0', 'attached_pic'];
  await ffmpeg(
    ...inputs,
    ...withCover('cover.png'),
    ...tagged,
    ...attached,
    '-c:a',
    'aac',
    folder.at('book.m4a'),
  );
  await ffmpeg(...inputs, ...withCover('cover.jpg'), ...tagged, ...attached, folder.at('book.mp3'));
  await ffmpeg(...inputs, ...withCover('cover.jpg'), ...tagged, ...attached, folder.at('book.flac'));
  await ffmpeg(
    ...[...inputs, '-map', '0', ...tagged, '-attach', folder.at('cover.jpg')],
    ...['-metadata:s:t', 'mimetype=image/jpeg', '-c:a', 'libopus', folder.at('book.mkv')],
  );
});

describe.each(rowsOfRun(['book.m4a', 'book.mp3', 'book.mkv'], 1))('%s', (source) => {
  it.each(formatNames)('to %s keeps what the format holds', async (format) => {
    const output = folder.at(`${source}.${format}`);
    await extract(folder.at(source), output, { format });
    const { tags, chapters, cover } = await inspect(output);
    const { keeps } = formats[format];
    expect(tags.title).toBe(keeps.tags ? TITLE : undefined);
    expect(tags.artist).toBe(keeps.tags ? 'Nobody' : undefined);
    expect(chapters.map((chapter) => chapter.tags?.title)).toEqual(
      keeps.chapters ? ['First', 'Second = last'] : [],
    );
    expect(cover === undefined ? null : [cover.width, cover.height]).toEqual(keeps.cover ? [300, 200] : null);
  });
});

it.runIf(currentRun === 'core')('keeps the tags of Ogg, which stand in its streams', async () => {
  await extract(folder.at('book.mp3'), folder.at('first.ogg'), { format: 'ogg' });
  await extract(folder.at('first.ogg'), folder.at('second.mp3'), { format: 'mp3' });
  const { tags, chapters, cover } = await inspect(folder.at('second.mp3'));
  expect(tags).toMatchObject({ title: TITLE, artist: 'Nobody' });
  expect(chapters).toHaveLength(2);
  expect(cover?.codec_name).toBe('mjpeg');
});

it.runIf(currentRun === 'core')('keeps tags, chapters and cover of a copy as well', async () => {
  const { output } = await extract(folder.at('book.m4a'), folder.at('copy.m4a'), { format: 'm4a' });
  expect(output.copied).toBe(true);
  const { tags, chapters, cover } = await inspect(folder.at('copy.m4a'));
  expect(tags.comment).toBe('two\nlines');
  expect(chapters).toHaveLength(2);
  expect(cover).toBeDefined();
});

it.runIf(currentRun === 'core')('moves the chapters with a trim', async () => {
  await extract(folder.at('book.m4a'), folder.at('part.mp3'), { format: 'mp3', start: 1, end: 3 });
  const { chapters } = await inspect(folder.at('part.mp3'));
  expect(chapters.map(({ start_time, end_time }) => [Number(start_time), Number(end_time)])).toEqual([
    [0, 0.5],
    [0.5, 2],
  ]);
  expect(await decodedSeconds(folder.at('part.mp3'))).toBeCloseTo(2, 2);
});

it.each(rowsOfRun(formatNames, 3))('%s without metadata holds none', async (format) => {
  const output = folder.at(`bare.${format}`);
  await extract(folder.at('book.m4a'), output, { format, preserveMetadata: false });
  const { tags, chapters, cover } = await inspect(output);
  // What ffprobe reports of any MP4 and any encoder.
  const own = [
    'major_brand',
    'minor_version',
    'compatible_brands',
    'handler_name',
    'vendor_id',
    'language',
    'encoder',
  ];
  expect(Object.keys(tags).filter((key) => !own.includes(key))).toEqual([]);
  expect(tags.encoder ?? '').not.toMatch(/Lav[fc]\d/);
  expect(chapters).toEqual([]);
  expect(cover).toBeUndefined();
});

it.runIf(currentRun === 'core')(
  'leaves out a cover of more than 36 megapixels and keeps the sound',
  async () => {
    const bomb = folder.at('bomb.mp3');
    await ffmpeg(
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      'color=s=6100x6000:d=1:r=1',
      '-frames:v',
      '1',
      folder.at('bomb.png'),
    );
    await ffmpeg(
      ...[
        '-v',
        'error',
        '-i',
        await folder.source('mp3.mp3'),
        '-i',
        folder.at('bomb.png'),
        '-map',
        '0:a',
        '-map',
        '1:v',
      ],
      ...['-c', 'copy', '-disposition:v:0', 'attached_pic', bomb],
    );
    const { output } = await extract(bomb, folder.at('defused.m4a'), { format: 'm4a' });
    expect((await inspect(output.path)).cover).toBeUndefined();
    expect(output.durationSeconds).toBeCloseTo(4, 1);
  },
);

it.runIf(currentRun === 'core')('carries a cover that no argument list could', async () => {
  const large = folder.at('noise.png');
  await ffmpeg(
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    'nullsrc=s=400x400,geq=random(1)*255:128:128',
    '-frames:v',
    '1',
    large,
  );
  expect((await stat(large)).size).toBeGreaterThan(150_000);
  await ffmpeg(
    ...[
      '-v',
      'error',
      '-i',
      await folder.source('mp3.mp3'),
      '-i',
      large,
      '-map',
      '0:a',
      '-map',
      '1:v',
      '-c',
      'copy',
    ],
    ...['-disposition:v:0', 'attached_pic', folder.at('large-cover.mp3')],
  );
  await extract(folder.at('large-cover.mp3'), folder.at('large-cover.opus'), { format: 'opus' });
  expect((await inspect(folder.at('large-cover.opus'))).cover).toMatchObject({ width: 400, height: 400 });
});
