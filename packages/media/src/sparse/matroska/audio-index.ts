/** The parts of a WebM or Matroska file that one of its audio tracks needs. */
import { type ByteSpans, bytesOf, joinSpans, united } from 'soundpost-outbound/ranges-spans';
import { type AudioIndex, LEAD, MOSTLY } from '../mp4/audio-index.ts';
import { UnsupportedLayout } from '../mp4/boxes.ts';
import type { ByteSource } from '../mp4/top-level.ts';
import { type Blocks, readBlocks } from './block-walk.ts';
import { elementHeader, IDS, MAX_ELEMENT_HEADER_BYTES } from './elements.ts';

/**
 * Reads everything except the content of blocks, and the audio nearby.
 * @throws UnsupportedLayout when the file has to be read whole; what the source throws
 */
export async function readMatroskaIndex(source: ByteSource): Promise<AudioIndex> {
  const tracks = await readBlocks(source, await contentOfSegment(source));
  const audio = tracks.filter(({ isAudio }) => isAudio).map(({ blocks }) => spansOf(blocks));
  if (audio.length === 0) throw new UnsupportedLayout('no audio track');
  if (Math.min(...audio.map(bytesOf)) > MOSTLY * source.sizeBytes)
    throw new UnsupportedLayout('hardly anything but sound');
  return {
    lead: united(...tracks.map(({ blocks }) => leadOf(blocks))),
    audioTracks: audio.length,
    track(place) {
      const chosen = audio[place];
      if (chosen === undefined) throw new UnsupportedLayout(`no audio track ${place}`);
      return chosen;
    },
  };
}

/** A file is a header and one segment, which ends with the file or does not give its size. */
async function contentOfSegment(source: ByteSource): Promise<number> {
  const headerAt = async (at: number) => {
    const end = Math.min(source.sizeBytes, at + MAX_ELEMENT_HEADER_BYTES);
    if (end <= at) throw new UnsupportedLayout('no segment');
    return elementHeader(await source.read(at, end));
  };
  const ebml = await headerAt(0);
  if (ebml.id !== IDS.ebml || ebml.payloadBytes === null) throw new UnsupportedLayout('no Matroska file');
  const at = ebml.headerBytes + ebml.payloadBytes;
  const segment = await headerAt(at);
  const content = at + segment.headerBytes;
  const end = content + (segment.payloadBytes ?? source.sizeBytes - content);
  if (segment.id !== IDS.segment || end !== source.sizeBytes)
    throw new UnsupportedLayout('no segment up to the end');
  return content;
}

function spansOf({ starts, ends }: Blocks): ByteSpans {
  return joinSpans({ starts: Float64Array.from(starts), ends: Float64Array.from(ends) });
}

function leadOf(blocks: Blocks): ByteSpans {
  const order = [...blocks.starts.keys()].sort((a, b) => (blocks.starts[a] ?? 0) - (blocks.starts[b] ?? 0));
  let bytes = 0;
  const first = order.slice(0, LEAD.samples).filter((block) => {
    const isWanted = bytes < LEAD.bytes;
    bytes += (blocks.ends[block] ?? 0) - (blocks.starts[block] ?? 0);
    return isWanted;
  });
  return spansOf({
    starts: first.map((block) => blocks.starts[block] ?? 0),
    ends: first.map((block) => blocks.ends[block] ?? 0),
  });
}
