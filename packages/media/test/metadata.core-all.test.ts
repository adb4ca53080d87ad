/** Tags, chapters and cover: kept where the format can hold them, gone when they are not wanted. */
// @module-tag quick-ffmpeg
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FormatName, formats } from 'soundpost-contract/formats';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract, extractSeveral } from 'soundpost-testing/extracting';
import { cachedFolder, cachedMedia } from 'soundpost-testing/media-cache';
import { inspect } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';

const folder = mediaFolder();
const TITLE = 'Größe = 5; #1 \\ "quoted"';
const formatNames = Object.keys(formats) as FormatName[];

const TAGS = [
  ';FFMETADATA1',
  'title=Größe \\= 5\\; \\#1 \\\\ "quoted"',
  'artist=Nobody',
  'comment=two\\\nlines',
  ...['[CHAPTER]', 'TIMEBASE=1/1000', 'START=0', 'END=1500', 'title=First'],
  ...['[CHAPTER]', 'TIMEBASE=1/1000', 'START=1500', 'END=4000', 'title=Second = last'],
].join('\n');

/** A file with tags, chapters and a cover. */
async function book(name: string, image: string, ...options: readonly string[]): Promise<string> {
  const tags = await cachedFolder(['tags', TAGS], (place) => writeFile(join(place, 'meta.txt'), TAGS));
  const picture = await cachedMedia(image, ['-f', 'lavfi', '-i', 'testsrc2=s=300x200', '-frames:v', '1']);
  const inputs = ['-i', await folder.source('music.wav'), '-f', 'ffmetadata', '-i', join(tags, 'meta.txt')];
  const cover = name.endsWith('.mkv')
    ? ['-map', '0', '-attach', picture, '-metadata:s:t', `mimetype=image/jpeg`]
    : ['-i', picture, '-map', '0', '-map', '2', '-c:v:0', 'copy', '-disposition:v:0', 'attached_pic'];
  return cachedMedia(name, [...inputs, ...cover, '-map_metadata', '1', '-map_chapters', '1', ...options]);
}

const books = {
  'book.m4a': () => book('book.m4a', 'cover.png', '-c:a', 'aac'),
  'book.mp3': () => book('book.mp3', 'cover.jpg'),
  'book.mkv': () => book('book.mkv', 'cover.jpg', '-c:a', 'libopus'),
};

describe.each(rowsOfRun(['book.m4a', 'book.mp3', 'book.mkv'] as const, 1))('%s', (source) => {
  it('keeps in each format what that holds', async () => {
    const wanted = formatNames.map((format) => ({
      path: folder.at(`${source}.${format}`),
      request: { format },
    }));
    await extractSeveral(await books[source](), wanted);
    for (const { path, request } of wanted) {
      const { tags, chapters, cover } = await inspect(path);
      const { keeps } = formats[request.format];
      expect([request.format, tags.title]).toEqual([request.format, keeps.tags ? TITLE : undefined]);
      expect(tags.artist).toBe(keeps.tags ? 'Nobody' : undefined);
      expect(chapters.map((chapter) => chapter.tags?.title)).toEqual(
        keeps.chapters ? ['First', 'Second = last'] : [],
      );
      expect(cover === undefined ? null : [cover.width, cover.height]).toEqual(
        keeps.cover ? [300, 200] : null,
      );
    }
  });
});

it.runIf(currentRun === 'core')('keeps the tags of Ogg, which stand in its streams', async () => {
  await extract(await books['book.mp3'](), folder.at('first.ogg'), { format: 'ogg' });
  await extract(folder.at('first.ogg'), folder.at('second.mp3'), { format: 'mp3' });
  const { tags, chapters, cover } = await inspect(folder.at('second.mp3'));
  expect(tags).toMatchObject({ title: TITLE, artist: 'Nobody' });
  expect(chapters).toHaveLength(2);
  expect(cover?.codec_name).toBe('mjpeg');
});

it.runIf(currentRun === 'core')('keeps tags, chapters and cover of a copy as well', async () => {
  const { output } = await extract(await books['book.m4a'](), folder.at('copy.m4a'), { format: 'm4a' });
  expect(output.copied).toBe(true);
  const { tags, chapters, cover } = await inspect(folder.at('copy.m4a'));
  expect(tags.comment).toBe('two\nlines');
  expect(chapters).toHaveLength(2);
  expect(cover).toBeDefined();
});

it.runIf(currentRun === 'core')('moves the chapters with a trim', async () => {
  const book = await books['book.m4a']();
  const { output } = await extract(book, folder.at('part.mp3'), { format: 'mp3', start: 1, end: 3 });
  const { chapters } = await inspect(folder.at('part.mp3'));
  expect(chapters.map(({ start_time, end_time }) => [Number(start_time), Number(end_time)])).toEqual([
    [0, 0.5],
    [0.5, 2],
  ]);
  expect(output.durationSeconds).toBeCloseTo(2, 2);
});

it('none of them is in a file without metadata', async () => {
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
  const wanted = rowsOfRun(formatNames, 3).map((format) => ({
    path: folder.at(`bare.${format}`),
    request: { format, preserveMetadata: false },
  }));
  await extractSeveral(await books['book.m4a'](), wanted);
  for (const { path } of wanted) {
    const { tags, chapters, cover } = await inspect(path);
    expect(Object.keys(tags).filter((key) => !own.includes(key))).toEqual([]);
    expect(tags.encoder ?? '').not.toMatch(/Lav[fc]\d/);
    expect(chapters).toEqual([]);
    expect(cover).toBeUndefined();
  }
});

it.runIf(currentRun === 'core')(
  'leaves out a cover of more than 36 megapixels and keeps the sound',
  async () => {
    const picture = ['-f', 'lavfi', '-i', 'color=s=6100x6000:d=1:r=1', '-frames:v', '1'];
    const bomb = await withCover('bomb.mp3', await cachedMedia('bomb.png', picture));
    const { output } = await extract(bomb, folder.at('defused.m4a'), { format: 'm4a' });
    expect((await inspect(output.path)).cover).toBeUndefined();
    expect(output.durationSeconds).toBeCloseTo(4, 1);
  },
);

it.runIf(currentRun === 'core')('carries a cover that no argument list could', async () => {
  const noise = ['-f', 'lavfi', '-i', 'nullsrc=s=400x400,geq=random(1)*255:128:128', '-frames:v', '1'];
  const large = await cachedMedia('noise.png', noise);
  expect((await stat(large)).size).toBeGreaterThan(150_000);
  const input = await withCover('large-cover.mp3', large);
  await extract(input, folder.at('large-cover.opus'), { format: 'opus' });
  expect((await inspect(folder.at('large-cover.opus'))).cover).toMatchObject({ width: 400, height: 400 });
});

async function withCover(name: string, picture: string): Promise<string> {
  const maps = ['-map', '0:a', '-map', '1:v', '-c', 'copy', '-disposition:v:0', 'attached_pic'];
  return cachedMedia(name, ['-i', await folder.source('mp3.mp3'), '-i', picture, ...maps]);
}
