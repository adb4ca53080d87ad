/**
 * Each container and each decoder of the build has a way in: a file that leads to it, and gives
 * samples. The tables of docs/inputs.md are made of the same lists, so a row of it without a file
 * fails here, and a row of what stays out in other-files.test.ts.
 */
import { noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { BUILT_FOLDER } from 'soundpost-testing/needs';
import { describe, expect, it } from 'vitest';
import { composeArguments, DECODED_CODECS } from '../src/command.ts';
import { probe } from '../src/probe.ts';
import { requirements } from '../src/requirements.ts';
import { runFfmpeg } from '../src/run.ts';
import { containers } from '../src/sniff.ts';
import { chooseTrack } from '../src/track-choice.ts';
import { SOUND, ways } from './ways-in.ts';

const isLean = tools.ffmpegPath.startsWith(BUILT_FOLDER);
const limits = { signal: noAbort, wallLimitMs: 20_000 };

describe('a way in', () => {
  const usedDecoders = new Set<string>();

  it.each(ways)('$name: $demuxer with $codec', async ({ name, demuxer, codec, file }) => {
    const path = await file(name);
    const probed = await probe(tools, path, limits);
    const track = chooseTrack(probed, undefined);
    expect({ demuxer: probed.container.demuxer, codec: track.codec }).toEqual({ demuxer, codec });
    let bytes = 0;
    const samples = { muxer: 'data', options: ['-map', `0:${track.streamIndex}`, '-c:a', 'pcm_s24le'] };
    const { stderr } = await runFfmpeg(
      tools,
      composeArguments({ inputs: [{ file: path, demuxer }], outputs: [samples] }),
      {
        ...limits,
        access: { reads: [path], writes: [] },
        onStdout: (chunk) => {
          bytes += chunk.length;
        },
      },
    );
    expect(bytes, stderr).toBeGreaterThan(0);
    // `Stream #0:0 -> #0:0 (mp3 (mp3float) -> pcm_s24le (native))`
    const [, named = '', decoder = ''] = /^ {2}Stream #0:\d+ -> #0:0 \((\w+) \((\w+)\)/m.exec(stderr) ?? [];
    usedDecoders.add(decoder === 'native' ? named : decoder);
  });

  it.each(['mjpeg', 'png'])('a cover is %s', async (codec) => {
    const file = await cachedMedia(`${codec}.mp3`, [
      ...[...SOUND, '-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=1:d=1', '-map', '0', '-map', '1'],
      ...['-c:a', 'libmp3lame', '-c:v', codec, '-disposition:v', 'attached_pic'],
    ]);
    const { cover } = await probe(tools, file, limits);
    expect(cover).toMatchObject({ width: 64, mediaType: codec === 'png' ? 'image/png' : 'image/jpeg' });
  });

  it('is there for each container', () => {
    const known = new Set(ways.map(({ demuxer }) => demuxer));
    expect(containers.filter(({ demuxer }) => !known.has(demuxer))).toEqual([]);
  });

  it('is there for each codec', () => {
    const known = new Set([...ways.map(({ codec }) => codec), 'mjpeg', 'png']);
    const all = [...DECODED_CODECS].filter((codec) => !codec.startsWith('lib'));
    expect(all.filter((codec) => !known.has(codec))).toEqual([]);
  });

  it.runIf(isLean)('leads to each decoder of the build', () => {
    const decoders = Object.values(requirements().decoders).flat();
    const known = new Set([...usedDecoders, 'mjpeg', 'png']);
    expect(decoders.filter((name) => !name.startsWith('lib') && !known.has(name))).toEqual([]);
  });
});
