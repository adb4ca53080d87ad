import { OutputRequest } from 'soundpost-contract/output-request';
import { describe, expect, it } from 'vitest';
import { planOutput, planVoiceRendition } from '../src/plan.ts';
import type { AudioTrack, Probe } from '../src/probe.ts';

const aac: AudioTrack = {
  index: 0,
  streamIndex: 1,
  codec: 'aac',
  profile: 'LC',
  language: null,
  channels: 2,
  layout: 'stereo',
  sampleRate: 48_000,
  bitrateKbps: 128,
  bitDepth: null,
  isFloat: false,
  isDefault: false,
  isEncrypted: false,
  isDecodable: true,
  startSeconds: 0,
  declaredSeconds: 60,
  tags: {},
};

function probed(...tracks: Partial<AudioTrack>[]): Probe {
  const [first = aac, ...others] = tracks.map((track, index) => ({
    ...aac,
    index,
    streamIndex: index + 1,
    ...track,
  }));
  return {
    container: { name: 'mp4', demuxer: 'mov', declares: 'header' },
    sizeBytes: 1_000_000,
    zeroSeconds: 0,
    beginnings: new Map(),
    isCountedByUse: false,
    durationSeconds: 60,
    tracks: [first, ...others],
    tags: {},
    chapters: [],
    cover: null,
    isAudioOnly: false,
  };
}

const plan = (request: Record<string, unknown>, ...tracks: Partial<AudioTrack>[]) =>
  planOutput(OutputRequest.parse(request), probed(...tracks));

const failing = (code: string, details: RegExp) =>
  expect.objectContaining({ code, details: expect.stringMatching(details) });

describe('which track', () => {
  const tracks = [
    { language: 'ger' },
    { language: 'eng', isDefault: true },
    { language: 'pt-BR' },
    { language: null },
  ] as const;

  it.each([
    [undefined, 1],
    [0, 0],
    [3, 3],
    ['en', 1],
    ['eng', 1],
    ['en-GB', 1],
    ['de', 0],
    ['deu', 0],
    ['ger', 0],
    ['DE', 0],
    ['por', 2],
    ['pt-BR', 2],
    ['pt-PT', 2],
  ])('%s is track %s', (track, index) => {
    expect(plan({ format: 'mp3', track }, ...tracks).track.index).toBe(index);
  });

  it('prefers the same tag to the same language', () => {
    const { track } = plan({ format: 'mp3', track: 'pt-PT' }, { language: 'pt-BR' }, { language: 'pt-PT' });
    expect(track.index).toBe(1);
  });

  it('is the first where none is flagged', () => {
    expect(plan({ format: 'mp3' }, {}, {}).track.index).toBe(0);
  });

  it.each([4, 'fr', 'und', 'zzz'])('%s does not exist, and the failure lists what does', (track) => {
    expect(() => plan({ format: 'mp3', track }, ...tracks)).toThrow(
      failing('EXTRACTION_FAILED', /0: ger, aac, 2 channels; 1: eng.*3: no language/),
    );
  });

  it('passes over a track that is announced and never comes', () => {
    expect(plan({ format: 'mp3' }, { channels: 0, isDefault: true }, {}).track.index).toBe(1);
    expect(() => plan({ format: 'mp3', track: 0 }, { sampleRate: 0 }, {})).toThrow(
      failing('EXTRACTION_FAILED', /has no audio/),
    );
  });
});

describe('copy or encode', () => {
  const copied = (request: Record<string, unknown>, track: Partial<AudioTrack>) =>
    plan(request, track).copy !== null;

  it.each([
    ['the same codec', { format: 'm4a' }, {}, true],
    ['the same codec in ADTS', { format: 'aac' }, { profile: 'HE-AAC' }, true],
    ['another codec', { format: 'mp3' }, {}, false],
    ['copy: never', { format: 'm4a', copy: 'never' }, {}, false],
    ['normalize', { format: 'm4a', normalize: true }, {}, false],
    ['a loudness', { format: 'm4a', loudness: -14 }, {}, false],
    ['a start', { format: 'm4a', start: 1 }, {}, false],
    ['an end', { format: 'm4a', end: 10 }, {}, false],
    ['the channels that it has', { format: 'm4a', channels: 2 }, {}, true],
    ['other channels', { format: 'm4a', channels: 1 }, {}, false],
    ['the rate that it has', { format: 'm4a', sampleRate: 48000 }, {}, true],
    ['another rate', { format: 'm4a', sampleRate: 44100 }, {}, false],
    ['more channels than the format is given', { format: 'm4a' }, { channels: 6 }, false],
    ['an AAC that ADTS has no words for', { format: 'aac' }, { profile: 'ELD' }, false],
    ['a lower quality than the source', { format: 'm4a', quality: 'low' }, { bitrateKbps: 192 }, false],
    ['the quality of the source', { format: 'm4a', quality: 'medium' }, { bitrateKbps: 129 }, true],
    ['a higher quality', { format: 'm4a', quality: 'extreme' }, {}, true],
    ['a bitrate above', { format: 'm4a', bitrate: '130k' }, {}, true],
    ['a bitrate below', { format: 'm4a', bitrate: '64k' }, {}, false],
    ['little-endian PCM', { format: 'wav' }, { codec: 'pcm_s16le', bitDepth: 16 }, true],
    ['big-endian PCM', { format: 'wav' }, { codec: 'pcm_s16be', bitDepth: 16 }, false],
    [
      '24 bits where 16 are asked for',
      { format: 'wav', quality: 'medium' },
      { codec: 'pcm_s24le', bitDepth: 24 },
      false,
    ],
    [
      '24 bits where as many are asked for',
      { format: 'wav', quality: 'high' },
      { codec: 'pcm_s24le', bitDepth: 24 },
      true,
    ],
    [
      'floats where 24 bits are the most',
      { format: 'wav', quality: 'high' },
      { codec: 'pcm_f32le', isFloat: true, bitDepth: 32 },
      false,
    ],
    [
      'floats when nothing is asked',
      { format: 'wav' },
      { codec: 'pcm_f32le', isFloat: true, bitDepth: 32 },
      true,
    ],
    ['24-bit FLAC as it is', { format: 'flac' }, { codec: 'flac', bitDepth: 24 }, true],
    ['24-bit FLAC at 16', { format: 'flac', quality: 'low' }, { codec: 'flac', bitDepth: 24 }, false],
    ['stereo Opus for a voice note', { format: 'voice' }, { codec: 'opus' }, false],
    ['mono Opus for a voice note', { format: 'voice' }, { codec: 'opus', channels: 1 }, true],
  ])('%s: %o', (_, request, track, expected) => {
    expect(copied(request, track)).toBe(expected);
  });

  it('leaves the bitrate of a copy to be measured where the container does not say it', () => {
    expect(
      plan({ format: 'opus', quality: 'low' }, { codec: 'opus', bitrateKbps: null }).copy?.maxKbps,
    ).toBeCloseTo(48, -1);
  });
});

describe('bitrate', () => {
  const kbps = (request: Record<string, unknown>, track: Partial<AudioTrack> = {}) =>
    plan({ copy: 'never', ...request }, track).encode.bitrateKbps;

  it.each([
    ['mp3', undefined, {}, 192],
    ['mp3', 'low', {}, 96],
    ['opus', undefined, {}, 128],
    ['mp3', 'extreme', { sampleRate: 22_050 }, 160],
    ['mp3', 'high', { sampleRate: 8000 }, 64],
    ['ogg', 'extreme', { channels: 1 }, 240],
    ['ogg', 'extreme', { channels: 1, sampleRate: 22_050 }, 90],
    ['opus', 'extreme', { channels: 1 }, 192],
    ['m4a', 'extreme', { channels: 1 }, 288],
    ['flac', 'high', {}, null],
  ])('%s in quality %s of %o is %s', (format, quality, track, expected) => {
    expect(kbps({ format, quality }, track)).toBe(expected);
  });

  it('is what is asked for, or the nearest that MP3 has', () => {
    expect(kbps({ format: 'opus', bitrate: '77k' })).toBe(77);
    expect(kbps({ format: 'mp3', bitrate: '250k' })).toBe(256);
    expect(kbps({ format: 'mp3', bitrate: '319k' })).toBe(320);
    expect(kbps({ format: 'm4a', bitrate: '512k' })).toBe(512);
  });

  it.each([
    [
      { format: 'mp3', bitrate: '256k' },
      { sampleRate: 22_050 },
      /mp3 with 2 channels at 22050 Hz supports 8k to 160k, not 256k/,
    ],
    [{ format: 'ogg', bitrate: '32k' }, {}, /supports 45k to 500k/],
    [{ format: 'opus', bitrate: '510k' }, { channels: 1 }, /1 channel at 48000 Hz supports 6k to 256k/],
  ])('%o of %o is ruled out', (request, track, details) => {
    expect(() => plan(request, track)).toThrow(failing('EXTRACTION_FAILED', details));
  });
});

describe('sample rate', () => {
  it.each([
    ['mp3', 96_000, 48_000],
    ['mp3', 44_100, 44_100],
    ['ogg', 96_000, 48_000],
    ['m4a', 96_000, 96_000],
    ['m4a', 192_000, 96_000],
    ['opus', 44_100, 48_000],
    ['flac', 192_000, 192_000],
  ])('%s of %i Hz has %i Hz', (format, sourceRate, expected) => {
    expect(plan({ format }, { sampleRate: sourceRate }).encode.sampleRate).toBe(expected);
  });
});

describe('a voice message', () => {
  const voice = (seconds: number | null, request: Record<string, unknown> = {}) =>
    plan({ format: 'voice', ...request }, { declaredSeconds: seconds }).encode.bitrateKbps;

  it('has the bitrate of its quality while that fits 512 KiB', () => {
    expect(voice(60)).toBe(24);
    expect(voice(60, { quality: 'extreme' })).toBe(32);
  });

  it('is lowered to fit, to 12k at the least', () => {
    const kbps = voice(180) ?? 0;
    expect(kbps).toBeLessThan(24);
    expect((kbps * 180 * 1000) / 8).toBeLessThan(512 * 1024);
    expect(voice(3600)).toBe(12);
  });

  it('is fitted by the part that is asked for', () => {
    expect(voice(3600, { start: 100, end: 160 })).toBe(24);
  });

  it('is left alone when a bitrate is asked for', () => {
    const { encode } = plan({ format: 'voice', bitrate: '32k' }, { declaredSeconds: 3600 });
    expect(encode).toMatchObject({ bitrateKbps: 32, bubbleKbps: null });
  });

  it('goes with an output: the same track, part and loudness', () => {
    const output = OutputRequest.parse({
      format: 'mp3',
      quality: 'low',
      track: 1,
      start: 2,
      loudness: -14,
      channels: 2,
    });
    expect(planVoiceRendition(output, probed({}, {}))).toMatchObject({
      formatName: 'voice',
      track: { index: 1 },
      trim: { startSeconds: 2, endSeconds: null },
      loudnessLufs: -14,
      encode: { channels: 1, sampleRate: 16_000, bitrateKbps: 24 },
    });
  });
});

it('refuses more channels than FLAC holds', () => {
  expect(() => plan({ format: 'flac' }, { channels: 10 })).toThrow(
    failing('EXTRACTION_FAILED', /at most 8 channels/),
  );
  expect(plan({ format: 'wav' }, { channels: 10 }).encode.channels).toBe(10);
});
