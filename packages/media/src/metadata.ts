/**
 * What a result keeps of its source besides the sound, written as an ffmetadata file that ffmpeg takes as a second
 * input: tags as arguments would end at 128 KiB (execve's limit for one), and a trim has to move the chapters.
 */
import type { Format } from 'soundpost-contract/formats';
import type { Tags } from './ffprobe.ts';
import type { OutputPlan } from './plan.ts';
import type { Probe } from './probe.ts';

type Chapter = Probe['chapters'][number];

/** Facts about the source's file or encoding, which would be false in the result. */
const TECHNICAL_TAGS =
  /^(major_brand|minor_version|compatible_brands|encoder|encoded_by|encoding_tool|handler_name|vendor_id|creation_time|duration|bps|language|metadata_block_picture|coverart|coverartmime|itun(smpb|norm)|_statistics.*|number_of_.*|replaygain_.*|r128_.*|rotate|timecode|software)(-.*)?$/i;

/** Both Vorbis comments (section 5.2.1) and ID3's TXXX take these. */
const TAG_KEY = /^[\x20-\x3c\x3e-\x7d]{1,128}$/;

const MAX_TAG_CHARACTERS = 64 * 1024;

export interface CoverImage {
  readonly cover: NonNullable<Probe['cover']>;
  readonly bytes: Uint8Array;
}

/** @param image where the container has no place for a picture stream: it goes into a tag, as Ogg does it. */
export function metadataFile(
  probe: Probe,
  trackTags: Tags,
  format: Format,
  trim: OutputPlan['trim'],
  image: CoverImage | null,
): string {
  const lines = [';FFMETADATA1'];
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

/** Whether chapters are Vorbis comments: ffmpeg 5.1 reads them from Vorbis and FLAC but writes them for Opus only. */
export function hasChapterTags({ muxer }: Format): boolean {
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

/** The chapters as they lie in the part that is kept. */
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
