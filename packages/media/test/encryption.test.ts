/** What only somebody with a key can decode is called so, and passed over for a track that anybody can. */
import { readFile, writeFile } from 'node:fs/promises';
import { noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { probe } from '../src/probe.ts';
import { chooseTrack } from '../src/track-choice.ts';

const folder = mediaFolder();
const NOISE = ['-f', 'lavfi', '-i', 'anoisesrc=d=2:r=48000:a=0.2:seed=1'];
const ENCRYPTED = { code: 'INVALID_VIDEO', details: expect.stringMatching(/^encrypted: .*; use a copy/) };

const probing = (file: string) => probe(tools, file, { signal: noAbort });

async function probed(name: string, bytes: Buffer) {
  await writeFile(folder.at(name), bytes);
  return await probing(folder.at(name));
}

/** Two tracks, PIDs 0x100 and 0x101. */
const stream = async (...options: string[]) =>
  await readFile(
    await cachedMedia('two.ts', [
      ...NOISE,
      ...['-map', '0', '-map', '0', '-c:a', 'ac3', '-b:a', '128k'],
      ...options,
    ]),
  );

/** @param isMeant of a PID, and of how much of the file stands before */
function scrambled(
  stream: Buffer,
  packetBytes: number,
  isMeant: (pid: number, before: number) => boolean,
): Buffer {
  const bytes = Buffer.from(stream);
  for (let at = packetBytes - 188; at < bytes.length; at += packetBytes) {
    const pid = bytes.readUInt16BE(at + 1) & 0x1fff;
    if (!isMeant(pid, at / bytes.length)) continue;
    bytes[at + 3] = (bytes[at + 3] ?? 0) | 0x80;
    for (let place = at + 4; place < at + 188; place += 1) bytes[place] = (bytes[place] ?? 0) ^ (place * 73);
  }
  return bytes;
}

const encryptedOf = ({ tracks }: Awaited<ReturnType<typeof probe>>) =>
  tracks.map(({ isEncrypted }) => isEncrypted);

describe('a scrambled transport stream', () => {
  it.each([
    [188, []],
    [192, ['-mpegts_m2ts_mode', '1']],
  ])('of packets of %i bytes', async (size, options) => {
    const bytes = await stream(...options);
    const pids = options.length === 0 ? [0x100, 0x101] : [0x1100, 0x1101];
    const one = await probed(
      'one.ts',
      scrambled(bytes, size, (pid) => pid === pids[0]),
    );
    expect(encryptedOf(one)).toEqual([true, false]);
    expect(chooseTrack(one, undefined).index).toBe(1);
    const all = await probed(
      'all.ts',
      scrambled(bytes, size, (pid) => pids.includes(pid)),
    );
    expect(() => chooseTrack(all, undefined)).toThrow(expect.objectContaining(ENCRYPTED));
  });

  it('whose tables are missing as well', async () => {
    const bytes = scrambled(await stream(), 188, (pid) => pid >= 0x100 && pid < 0x1000);
    const packets = Array.from({ length: bytes.length / 188 }, (_, nth) =>
      bytes.subarray(nth * 188, nth * 188 + 188),
    );
    const sound = packets.filter((packet) => [0x100, 0x101].includes(packet.readUInt16BE(1) & 0x1fff));
    await expect(probed('bare.ts', Buffer.concat(sound))).rejects.toMatchObject(ENCRYPTED);
  });

  it('is none where only the beginning is', async () => {
    const bytes = scrambled(await stream(), 188, (pid, before) => pid === 0x100 && before < 0.2);
    expect(encryptedOf(await probed('late-key.ts', bytes))).toEqual([false, false]);
  });

  it('is none where nothing is', async () => {
    expect(encryptedOf(await probed('clear.ts', await stream()))).toEqual([false, false]);
  });
});

describe('an MP4', () => {
  const key = [
    '-encryption_key',
    '76a6c65c5ea762046bd749a2e632ccbb',
    '-encryption_kid',
    'a7e61c373e219033c21091fa607bf3b8',
  ];

  it('in Common Encryption', async () => {
    const scheme = ['-encryption_scheme', 'cenc-aes-ctr', ...key];
    const file = await probing(await cachedMedia('cenc.mp4', [...NOISE, '-c:a', 'aac', ...scheme]));
    expect(() => chooseTrack(file, undefined)).toThrow(expect.objectContaining(ENCRYPTED));
  });

  it.each(['drms', 'aavd'])('with a sample entry %s', async (entry) => {
    const bytes = await readFile(await cachedMedia('a.m4a', [...NOISE, '-c:a', 'aac']));
    bytes.write(entry, bytes.lastIndexOf('mp4a'), 'latin1');
    const file = await probed(`${entry}.m4a`, bytes);
    expect(() => chooseTrack(file, undefined)).toThrow(expect.objectContaining(ENCRYPTED));
  });
});

describe('ASF', () => {
  const words = (...texts: readonly string[]) =>
    Buffer.concat(
      texts.map((text) => {
        const bytes = Buffer.from(`0000${text}\0`, 'latin1');
        bytes.writeUInt32LE(text.length + 1);
        return bytes;
      }),
    );

  /** Objects of the ASF specification, 3.14 and 3.15. */
  it.each([
    ['fbb3112223bdd211b4b700a0c955fc6e', words('secret', 'DRM', 'key', 'http://a.example/')],
    ['14e68a292226174cb935dae07ee9289c', words('<WRMHEADER/>')],
  ])('with the object of content encryption %s', async (guid, content) => {
    const bytes = await readFile(await cachedMedia('clear.wma', [...NOISE, '-c:a', 'wmav2']));
    const object = Buffer.concat([Buffer.from(guid, 'hex'), Buffer.alloc(8), content]);
    object.writeBigUInt64LE(BigInt(object.length), 16);
    // The header has 30 bytes before its objects: GUID, size, their number.
    const headerBytes = bytes.readBigUInt64LE(16);
    bytes.writeBigUInt64LE(headerBytes + BigInt(object.length), 16);
    bytes.writeUInt32LE(bytes.readUInt32LE(24) + 1, 24);
    const whole = [bytes.subarray(0, 30), object, bytes.subarray(30)];
    const file = await probed('drm.wma', Buffer.concat(whole));
    expect(() => chooseTrack(file, undefined)).toThrow(expect.objectContaining(ENCRYPTED));
  });
});

it('Matroska with ContentEncryption', async () => {
  // RFC 9559: AES of whole blocks with a key of 16 bytes; it takes the place of a name as long.
  const encodings = Buffer.from(
    `6d80a96240a650318100503281015033810150359747e1810547e290${'ab'.repeat(16)}`,
    'hex',
  );
  const name = 'n'.repeat(encodings.length - 3);
  const named = ['-c:a', 'aac', '-metadata:s:a', `title=${name}`];
  const bytes = await readFile(await cachedMedia('named.mka', [...NOISE, '-f', 'matroska', ...named]));
  encodings.copy(bytes, bytes.indexOf('nnn') - 3);
  const file = await probed('encrypted.mka', bytes);
  expect(() => chooseTrack(file, undefined)).toThrow(expect.objectContaining(ENCRYPTED));
});

it('a segment of HLS with sample encryption', async () => {
  const bytes = await readFile(await cachedMedia('aac.ts', [...NOISE, '-c:a', 'aac']));
  // The map of the programme, with another stream_type and a checksum that fits.
  for (let at = 0; at < bytes.length; at += 188) {
    if ((bytes.readUInt16BE(at + 1) & 0x1fff) !== 0x1000) continue;
    const section = bytes.subarray(at + 5, at + 8 + (bytes.readUInt16BE(at + 6) & 0xfff));
    section[section.indexOf(0x0f, 12)] = 0xcf;
    section.writeUInt32BE(crc32(section.subarray(0, -4)), section.length - 4);
  }
  const file = await probed('sample-aes.ts', bytes);
  expect(() => chooseTrack(file, undefined)).toThrow(expect.objectContaining(ENCRYPTED));
});

/** ISO/IEC 13818-1 annex A. */
function crc32(bytes: Buffer): number {
  let crc = 0xffff_ffff;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc & 0x8000_0000 ? 0x04c1_1db7 : 0);
  }
  return crc >>> 0;
}
