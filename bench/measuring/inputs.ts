/** Videos to measure with: 720p H.264 of 4.3 Mbit/s and AAC of 128 kbit/s, a minute encoded and repeated. Made once, kept in the folder for temporary files. */
import { execFile } from 'node:child_process';
import { access, mkdir, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
export const inputFolder = join(tmpdir(), 'soundpost-bench');

const PICTURES = 'testsrc2=s=1280x720:r=25:d=60,noise=alls=12:allf=t';
const SOUND =
  "aevalsrc='0.2*sin(880*PI*t)+0.15*sin(1108.7*PI*t)*sin(3*t)+0.05*(random(0)*2-1)|0.2*sin(660*PI*t)+0.1*sin(988*PI*t)*cos(5*t)+0.05*(random(1)*2-1)':s=48000:d=60";

/** Tones that swell and a stroke each half second: at −16 LUFS its peaks are over full scale, so that it needs a limiter. */
const STROKES =
  "aevalsrc='0.1*sin(440*PI*t)*(1+sin(4*t))+0.75*exp(-60*mod(t,0.5))*sin(3000*PI*t)+0.01*(random(0)*2-1)|0.1*sin(554*PI*t)*(1+cos(3*t))+0.7*exp(-50*mod(t,0.5))*sin(2400*PI*t)+0.01*(random(1)*2-1)':s=48000";

/** @returns the name in {@link inputFolder} of an m4a that is too quiet and too peaky */
export async function strokesOf(minutes: number): Promise<string> {
  await mkdir(inputFolder, { recursive: true });
  const name = `strokes-${minutes}.m4a`;
  await made(name, [
    '-f',
    'lavfi',
    '-i',
    `${STROKES}:d=${minutes * 60}`,
    '-af',
    'volume=-4dB',
    '-c:a',
    'aac',
    '-b:a',
    '128k',
  ]);
  return name;
}

/** ffmpeg's own interleaving: hardly more than a packet of sound between two pictures. @returns the name in {@link inputFolder} */
export async function videoOf(minutes: number): Promise<string> {
  const minute = await minuteOfVideo();
  const name = `video-${minutes}.mp4`;
  await made(name, [
    ...['-stream_loop', String(minutes - 1), '-i', minute, '-c', 'copy', '-movflags', '+faststart'],
  ]);
  return name;
}

/** The beginning of {@link videoOf}. @param seconds 60 at most. @returns the name in {@link inputFolder} */
export async function clipOf(seconds: number): Promise<string> {
  const minute = await minuteOfVideo();
  const name = `clip-${seconds}.mp4`;
  await made(name, ['-i', minute, '-t', String(seconds), '-c', 'copy', '-movflags', '+faststart']);
  return name;
}

/** @returns its path */
async function minuteOfVideo(): Promise<string> {
  await mkdir(inputFolder, { recursive: true });
  return made('minute.mp4', [
    ...['-f', 'lavfi', '-i', PICTURES, '-f', 'lavfi', '-i', SOUND],
    ...[
      '-c:v',
      'libx264',
      '-preset',
      'superfast',
      '-b:v',
      '4200k',
      '-maxrate',
      '5M',
      '-bufsize',
      '10M',
      '-g',
      '250',
    ],
    ...['-pix_fmt', 'yuv420p', '-c:a', 'aac', '-b:a', '128k'],
  ]);
}

/** Sound alone, the same as in {@link videoOf}. @returns the name in {@link inputFolder} */
export async function audioOf(
  minutes: number,
  extension: string,
  encoder: readonly string[],
): Promise<string> {
  const video = await videoOf(minutes);
  const name = `sound-${minutes}-${encoder.join('').replace(/[^a-z0-9]/g, '')}.${extension}`;
  await made(name, ['-i', join(inputFolder, video), '-vn', '-af', 'asetpts=N/SR/TB', ...encoder]);
  return name;
}

/** A voice note as phones make them. @returns the name in {@link inputFolder} */
export function voiceOf(minutes: number): Promise<string> {
  return audioOf(minutes, 'ogg', ['-ac', '1', '-c:a', 'libopus', '-b:a', '32k', '-application', 'voip']);
}

async function made(name: string, args: readonly string[]): Promise<string> {
  const path = join(inputFolder, name);
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (!exists) {
    const part = join(inputFolder, `part-${name}`);
    await run('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...args, part]);
    await rename(part, path);
  }
  return path;
}
