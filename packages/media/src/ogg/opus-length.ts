/** How long an Ogg Opus file is, by its packets and without decoding any: decoding an hour takes as long as twenty copies of it. */
import { open } from 'node:fs/promises';
import { ByteReader } from '../byte-file.ts';
import { packetSamples } from './opus-frames.ts';
import { oggPage, pageHead } from './pages.ts';

/** OpusHead and OpusTags (RFC 7845 section 3). */
const HEADER_PACKETS = 2;
const PRE_SKIP_AT = 10;

/**
 * What a decoder gives out: all packets without the pre-skip, and without what the last page leaves out of them (RFC 7845 section 4).
 * @returns samples of one channel at 48 kHz
 */
export async function opusSamples(path: string): Promise<number> {
  const file = await open(path);
  try {
    const reader = new ByteReader(file);
    let preSkip = 0;
    let headers = 0;
    let total = 0;
    let endOfPageBefore = 0;
    let cutOff = 0;
    // Of a packet that goes on from one page to the next only its beginning is of interest.
    let head: Buffer | undefined;
    for (let page = await oggPage(reader); page !== undefined; page = await oggPage(reader)) {
      let samples = 0;
      const { granule, lacing, bodyAt } = pageHead(page);
      let at = bodyAt;
      for (const bytes of lacing) {
        head ??= page.subarray(at, at + PRE_SKIP_AT + 2);
        at += bytes;
        if (bytes === 255) continue;
        if (headers === 0) preSkip = head.readUInt16LE(PRE_SKIP_AT);
        if (headers < HEADER_PACKETS) headers += 1;
        else samples += packetSamples(head);
        head = undefined;
      }
      total += samples;
      // −1: no packet ends on the page.
      if (granule >= 0 && samples > 0) {
        cutOff = Math.max(0, endOfPageBefore + samples - granule);
        endOfPageBefore = granule;
      }
    }
    return Math.max(0, total - preSkip - cutOff);
  } finally {
    await file.close();
  }
}
