/** Tags in the character sets of old programs. */
import { appendFile, copyFile, readFile } from 'node:fs/promises';
import { extract } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { inspect } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { textReader } from '../src/tag-text.ts';

const folder = mediaFolder();

/** Titles, and their bytes in windows-1252, windows-1251, Shift JIS and GBK. */
const LEGACY = [
  ['Motörhead', '4d6f74f67268656164'],
  ['Beyoncé “Déjà Vu”', '4265796f6e63e9209344e96ae020567594'],
  ['Группа крови', 'c3f0f3efefe020eaf0eee2e8'],
  ['Сплин', 'd1efebe8ed'],
  ['宇多田ヒカル First Love', '894691bd93638371834a838b204669727374204c6f7665'],
  ['アニメ', '8341836a8381'],
  ['月亮代表我的心', 'd4c2c1c1b4fab1edced2b5c4d0c4'],
] as const;

const latin1 = (hex: string) => Buffer.from(hex, 'hex').toString('latin1');
const asUtf8 = (text: string) => Buffer.from(text).toString('latin1');

async function read(tags: Record<string, string>, demuxer: string): Promise<string[]> {
  const text = await textReader([tags], demuxer);
  return Object.values(tags).map(text);
}

describe('the text of tags', () => {
  it.each(LEGACY)('%s is read from bytes, and from what a file calls Latin-1', async (title, hex) => {
    expect(await read({ title: latin1(hex) }, 'mp3')).toEqual([title]);
    expect(await read({ title: asUtf8(latin1(hex)), encoder: 'LAME' }, 'mp3')).toEqual([title, 'LAME']);
  });

  it.each(['Größe = 5', 'Дом', '宇多田', 'CAFÉ', 'naïve'])('%s in UTF-8 stays what it is', async (title) => {
    for (const demuxer of ['mp3', 'mov'])
      expect(await read({ title: asUtf8(title) }, demuxer)).toEqual([title]);
  });

  it('UTF-8 that was written as Latin-1 is UTF-8', async () => {
    expect(await read({ title: asUtf8(asUtf8('Größe')) }, 'wav')).toEqual(['Größe']);
  });

  it('a container of Unicode is believed', async () => {
    const title = latin1('c3f0f3efefe0');
    expect(await read({ title: asUtf8(title) }, 'flac')).toEqual([title]);
  });

  it('a character that a tag of 30 bytes cuts in two is left out', async () => {
    expect(
      await read({ title: latin1('d4c2c1c1b4fab1edced2b5c4d0c4'), album: latin1('d4c2c1c1b4') }, 'mp3'),
    ).toEqual(['月亮代表我的心', '月亮']);
  });
});

it('an ID3v1 tag in windows-1251 reaches the output', async () => {
  const tone = await cachedMedia('untagged.mp3', [
    ...['-f', 'lavfi', '-i', 'sine=d=1', '-id3v2_version', '0', '-write_id3v1', '0'],
  ]);
  const input = folder.at('id3v1.mp3');
  await copyFile(tone, input);
  const field = (hex: string, bytes: number) =>
    Buffer.concat([Buffer.from(hex, 'hex'), Buffer.alloc(bytes)], bytes);
  // Title, artist, album, year, comment and genre (id3.org, ID3v1).
  const fields = [
    field('c3f0f3efefe020eaf0eee2e8', 30),
    field('cae8edee', 30),
    Buffer.alloc(30),
    Buffer.alloc(34),
  ];
  await appendFile(input, Buffer.concat([Buffer.from('TAG'), ...fields, Buffer.from([17])]));
  expect((await readFile(input)).subarray(-128, -125).toString()).toBe('TAG');
  const { output } = await extract(input, folder.at('id3v1.flac'), { format: 'flac' });
  expect((await inspect(output.path)).tags).toMatchObject({ title: 'Группа крови', artist: 'Кино' });
});
