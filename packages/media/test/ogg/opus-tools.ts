/** What a voice note is, by opus-tools and by its bytes: nothing of src/ is used here. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect } from 'vitest';

const run = promisify(execFile);

/** Of each packet after the headers, by its first two bytes (RFC 6716 section 3.1, RFC 3533 section 6). */
async function heads(path: string): Promise<{ config: number; code: number; frames: number }[]> {
  const file = await readFile(path);
  const packets: Buffer[] = [];
  let begun = true;
  for (let at = 0; at < file.length; ) {
    const segments = file.readUInt8(at + 26);
    let body = at + 27 + segments;
    for (const bytes of file.subarray(at + 27, at + 27 + segments)) {
      if (begun) packets.push(file.subarray(body, body + 2));
      begun = bytes < 255;
      body += bytes;
    }
    at = body;
  }
  return packets.slice(2).map((bytes) => {
    const code = bytes.readUInt8(0) & 3;
    const frames = code === 3 ? bytes.readUInt8(1) & 0x3f : code === 0 ? 1 : 2;
    return { config: bytes.readUInt8(0) >> 3, code, frames };
  });
}

/** By libopus, at 48 kHz, without what players add. */
export async function libopusDecodes(path: string, out = `${path}.wav`): Promise<Buffer> {
  await run('opusdec', ['--quiet', '--no-dither', '--rate', '48000', path, out]);
  const wav = await readFile(out);
  return wav.subarray(wav.indexOf('data') + 8);
}

/** The packets by their bytes; the headers by opusinfo, by opusinfo, which warns of nothing. */
export async function expectForm(path: string): Promise<void> {
  const all = await heads(path);
  const full = all.slice(0, -1);
  expect(full.filter(({ config, code, frames }) => config !== 9 || code !== 3 || frames !== 3)).toEqual([]);
  expect(all.at(-1)?.config).toBe(9);
  const { stdout } = await run('opusinfo', [path]);
  expect(stdout).not.toMatch(/warning|note:|error/i);
  expect(stdout).toMatch(/Original sample rate: 16000 Hz/);
  expect(stdout).toMatch(/Channels: 1$/m);
  expect(stdout).not.toMatch(/lavc|lavf|libopus|encoder/i);
}
