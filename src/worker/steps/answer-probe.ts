/** The last step of a probe: says what is in the source, and makes no file (decisions A2). */
import { measureSource } from 'soundpost-media/measure';
import { probe } from 'soundpost-media/probe';
import type { LocalSource } from 'soundpost-media/source-request';
import type { ExtractResult } from '../../jobs/payloads.ts';
import type { Step } from '../step.ts';
import { inputFileOf } from './analyze.ts';

export const answerProbe: Step<LocalSource, ExtractResult> = async (video, { services, signal, report }) => {
  report('analyzing_video', 0);
  const { tools } = services;
  const probed = video.probe ?? (await probe(tools, video.path, { signal }));
  const { endSeconds, truncated } = await measureSource({ tools, input: video.path, probe: probed, signal });
  return {
    version: 1,
    // Never what the container claims (decisions A4).
    inputFile: { ...inputFileOf({ video, probe: probed }, null), duration: endSeconds },
    warnings: truncated === null ? [] : [{ code: 'TRUNCATED', message: truncated }],
    outputFile: null,
    voice: null,
  };
};
