/** A voice note of the form that phones make themselves, of what any file sounds like. */
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packVoiceNote } from 'soundpost-media/ogg/voice-form';
import { cachedFolder } from './media-cache.ts';

/** As libopus makes it in the mode of phones: one frame a packet. */
export const SILK = [
  '-ac',
  '1',
  '-ar',
  '16000',
  '-c:a',
  'libopus',
  '-application',
  'voip',
  '-compression_level',
  '6',
];

export async function makeNativeNote(from: string, path: string): Promise<void> {
  const frames = `${path}.frames.ogg`;
  await promisify(execFile)('ffmpeg', ['-v', 'error', '-y', '-i', from, ...SILK, '-b:a', '24k', frames]);
  await packVoiceNote(frames, path);
  await rm(frames);
}

/** The same of a file of the cache, kept there. */
export async function nativeNoteOf(cached: string): Promise<string> {
  const folder = await cachedFolder(['native note', cached, SILK], (path) =>
    makeNativeNote(cached, join(path, 'note.ogg')),
  );
  return join(folder, 'note.ogg');
}
