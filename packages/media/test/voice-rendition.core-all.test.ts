/** The voice message that is made together with an output, and voice as an output of its own. */
// @module-tag quick-ffmpeg
import { stat } from 'node:fs/promises';
import { OutputRequest } from 'soundpost-contract/output-request';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract, extractOne, noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { examine } from 'soundpost-testing/oracle';
import { mediaFolder, type SourceName } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { planOutput, planVoiceRendition } from '../src/plan.ts';
import { probe } from '../src/probe.ts';

const folder = mediaFolder();

describe('a voice message with the output', () => {
  async function both(source: SourceName, request: Record<string, unknown>) {
    const input = await folder.source(source);
    const output = OutputRequest.parse(request);
    const probed = await probe(tools, input, { signal: noAbort });
    return extractOne({
      ...{
        tools,
        input,
        probe: probed,
        plan: planOutput(output, probed),
        outputPath: folder.at('with-voice.out'),
      },
      voice: { plan: planVoiceRendition(output, probed), path: folder.at('with-voice.ogg') },
      ...{ signal: noAbort, maxAudioSeconds: 3600 },
    });
  }

  it.each(
    rowsOfRun(
      [
        { format: 'mp3' },
        { format: 'm4a' },
        { format: 'flac', start: 1, end: 3 },
        { format: 'mp3', normalize: true },
      ],
      1,
    ),
  )('is made of %o', async (request) => {
    const { output, voice } = await both('speech.mp4', request);
    const spoken = await examine(folder.at('with-voice.ogg'));
    expect(spoken.audio).toMatchObject({ codec_name: 'opus', channels: 1 });
    expect(voice).toMatchObject({ fitsVoiceBubble: true, codec: 'opus', copied: false });
    expect(output.copied).toBe(request.format === 'm4a');
    const made = await examine(output.path);
    expect(made.audio.codec_name).toBe(request.format === 'm4a' ? 'aac' : request.format);
    expect(Math.abs(made.seconds - spoken.seconds)).toBeLessThan(0.05);
  });

  it.runIf(currentRun === 'core')(
    'fits a bubble even where the container was wrong about its length',
    async () => {
      const noise = ['-f', 'lavfi', '-i', 'anoisesrc=d=240:r=16000:a=0.3'];
      const input = await cachedMedia('long.wav', noise);
      const probed = await probe(tools, input, { signal: noAbort });
      const plan = planOutput(OutputRequest.parse({ format: 'voice' }), probed);
      const asIfShort = { ...plan, encode: { ...plan.encode, bitrateKbps: 40 } };
      const { output } = await extract(
        input,
        folder.at('long.ogg'),
        { format: 'voice' },
        { plan: asIfShort },
      );
      expect((await stat(output.path)).size).toBeLessThanOrEqual(512 * 1024);
      expect(output.fitsVoiceBubble).toBe(true);
      expect(output.durationSeconds).toBeCloseTo(240, 0);
      expect(output.sizeBytes / 240).toBeGreaterThan(1500);
    },
  );
});
