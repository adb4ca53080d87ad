/**
 * The tags and chapters that a result keeps, as an ffmetadata file that ffmpeg reads as a second
 * input. Arguments could hold at most 128 KiB of tags (execve), and a trim moves the chapters.
 */
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Format } from 'soundpost-contract/formats';
import type { Command } from './command.ts';
import type { Tags } from './ffprobe.ts';
import { inputOf, type Job, runOnInput } from './input-run.ts';
import type { OutputPlan } from './plan.ts';
import type { Probe } from './probe.ts';

type Chapter = Probe['chapters'][number];

/** Facts about the source's file or encoding, which would be false for the result. */
const TECHNICAL_TAGS =
  /^(major_brand|minor_version|compatible_brands|encoder|encoded_by|encoding_tool|handler_name|vendor_id|creation_time|duration|bps|language|metadata_block_picture|coverart|coverartmime|itun(smpb|norm)|_statistics.*|number_of_.*|replaygain_.*|r128_.*|rotate|timecode|software)(-.*)?$/i;

/** Both Vorbis comments (section 5.2.1) and ID3's TXXX take these. */
const TAG_KEY = /^[\x20-\x3c\x3e-\x7d]{1,128}$/;

const MAX_TAG_CHARACTERS = 64 * 1024;

interface CoverImage {
  readonly cover: NonNullable<Probe['cover']>;
  readonly bytes: Uint8Array;
}

/** `place` is the input's number in the command, if a metadata file is written. */
export async function writeMetadata(
  job: Job,
  { plan, path, isBare }: { readonly plan: OutputPlan; readonly path: string; readonly isBare: boolean },
  place: number,
): Promise<{ file: string | null; options: string[] }> {
  const { format, track, preserveMetadata, trim, trimSilence } = plan;
  const streamTags = ['-map_metadata:s', '-1'];
  if (!preserveMetadata || !format.keeps.tags || isBare) {
    return { file: null, options: ['-map_metadata', '-1', ...streamTags, '-map_chapters', '-1'] };
  }
  const cover = format.keeps.cover ? job.probe.cover : null;
  const inTag = format.muxer === 'ogg' && cover !== null ? await readCover(job, cover) : null;
  const file = join(job.scratch, `${basename(path)}.ffmetadata`);
  // Chapters have no place in audio without its pauses.
  const kept = trimSilence ? { ...job.probe, chapters: [] } : job.probe;
  await writeFile(file, metadataFile(kept, track.tags, format, trim, inTag));
  const options = [
    '-map_metadata',
    String(place),
    ...streamTags,
    '-map_chapters',
    format.keeps.chapters && !hasChapterTags(format) ? String(place) : '-1',
  ];
  if (track.language !== null && /^[a-z]{3}$/.test(track.language)) {
    options.push('-metadata:s:a:0', `language=${track.language}`);
  }
  if (cover !== null && inTag === null && format.muxer !== 'ogg') {
    // The comment holds what ID3 and FLAC call the kind of picture.
    options.push(...['-map', `0:${cover.streamIndex}`, '-c:v', 'copy', '-disposition:v:0', 'attached_pic']);
    options.push(...['-metadata:s:v:0', 'comment=Cover (front)']);
  }
  return { file, options };
}

/** A picture in an Ogg tag is in the headers, which players read whole: larger ones are dropped. */
const MAX_TAG_COVER_BYTES = 8 * 1024 * 1024;

async function readCover(job: Job, cover: NonNullable<Probe['cover']>): Promise<CoverImage | null> {
  const chunks: Buffer[] = [];
  const command: Command = {
    inputs: [inputOf(job)],
    outputs: [
      {
        muxer: 'data',
        options: [
          '-map',
          `0:${cover.streamIndex}`,
          '-c',
          'copy',
          '-frames:v',
          '1',
          '-fs',
          String(MAX_TAG_COVER_BYTES),
        ],
      },
    ],
  };
  await runOnInput(
    job,
    command,
    () => {},
    (chunk) => chunks.push(chunk),
  );
  const bytes = Buffer.concat(chunks);
  return bytes.length === 0 || bytes.length >= MAX_TAG_COVER_BYTES ? null : { cover, bytes };
}

/** @param image for a container without picture streams: it goes into a tag, as in Ogg. */
function metadataFile(
  probe: Probe,
  trackTags: Tags,
  format: Format,
  trim: OutputPlan['trim'],
  image: CoverImage | null,
): string {
  // iTunes' kind of media: an audiobook is 2.
  const lines = [';FFMETADATA1', ...(format.extension === 'm4b' ? ['media_type=2'] : [])];
  if (format.keeps.tags) {
    // Ogg keeps a file's tags in its streams; elsewhere a stream's tags describe the track.
    const tags = probe.container.demuxer === 'ogg' ? { ...probe.tags, ...trackTags } : probe.tags;
    for (const [key, value] of Object.entries(tags)) {
      if (TECHNICAL_TAGS.test(key) || !TAG_KEY.test(key)) continue;
      lines.push(`${escaped(key)}=${escaped(value.slice(0, MAX_TAG_CHARACTERS))}`);
    }
  }
  if (image !== null) {
    lines.push(`METADATA_BLOCK_PICTURE=${escaped(pictureBlock(image).toString('base64'))}`);
  }
  if (format.keeps.chapters) {
    const chapters = trimChapters(probe.chapters, trim);
    lines.push(...chapters.flatMap(hasChapterTags(format) ? chapterTags : chapterLines));
  }
  return `${lines.join('\n')}\n`;
}

/** Whether chapters are Vorbis comments: ffmpeg 5.1 reads Vorbis' and FLAC's, writes only Opus'. */
function hasChapterTags({ muxer }: Format): boolean {
  return muxer === 'ogg' || muxer === 'flac';
}

/** The chapter extension of Vorbis comments (wiki.xiph.org/Chapter_Extension). */
function chapterTags({ startSeconds, title }: Chapter, index: number): string[] {
  const key = `CHAPTER${String(index).padStart(3, '0')}`;
  const ms = Math.round(startSeconds * 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const clock = `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}`;
  const lines = [`${key}=${clock}.${String(ms % 1000).padStart(3, '0')}`];
  return title === null ? lines : [...lines, `${key}NAME=${escaped(title)}`];
}

function chapterLines({ startSeconds, endSeconds, title }: Chapter): string[] {
  const lines = [
    '[CHAPTER]',
    'TIMEBASE=1/1000',
    `START=${Math.round(startSeconds * 1000)}`,
    `END=${Math.round(endSeconds * 1000)}`,
  ];
  return title === null ? lines : [...lines, `title=${escaped(title)}`];
}

/** The chapters within the part that is kept. */
function trimChapters(chapters: readonly Chapter[], trim: OutputPlan['trim']): readonly Chapter[] {
  if (trim === null) return chapters;
  const length = (trim.endSeconds ?? Number.POSITIVE_INFINITY) - trim.startSeconds;
  return chapters
    .map(({ startSeconds, endSeconds, title }) => ({
      startSeconds: Math.max(0, startSeconds - trim.startSeconds),
      endSeconds: Math.min(length, endSeconds - trim.startSeconds),
      title,
    }))
    .filter(({ startSeconds, endSeconds }) => endSeconds > startSeconds);
}

/** ffmpeg's formats documentation, "Metadata": these five are escaped, and nothing else. */
function escaped(text: string): string {
  return text.replaceAll('\0', '').replace(/[=;#\\\n]/g, '\\$&');
}

/** RFC 9639 section 8.8, also what METADATA_BLOCK_PICTURE carries in base64. */
function pictureBlock({ cover, bytes }: CoverImage): Buffer {
  const FRONT_COVER = 3;
  const word = (value: number): Buffer => {
    const buffer = Buffer.alloc(4);
    buffer.writeUInt32BE(value);
    return buffer;
  };
  const mediaType = Buffer.from(cover.mediaType, 'ascii');
  return Buffer.concat([
    word(FRONT_COVER),
    word(mediaType.length),
    mediaType,
    word(0), // no description
    word(cover.width),
    word(cover.height),
    word(24), // bits a pixel
    word(0), // no palette
    word(bytes.length),
    bytes,
  ]);
}
