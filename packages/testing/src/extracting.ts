/** The whole way through the media layer, as the worker takes it. */
import { OutputRequest } from 'soundpost-contract/output-request';
import { detectSandbox } from 'soundpost-media/abilities';
import { type Extraction, type ExtractOptions, extractAudio } from 'soundpost-media/extract';
import { type OutputPlan, planOutput } from 'soundpost-media/plan';
import { probe } from 'soundpost-media/probe';
import type { MediaTools } from 'soundpost-media/run';
import { mediaTools } from './media-tools.ts';

/** Without a sandbox, for tools that are scripts of a test. */
export const bareTools: MediaTools = mediaTools;

export const tools: MediaTools = { ...bareTools, sandbox: await detectSandbox(bareTools, 60_000) };

/** The tools after a launcher of the test's, and without what would start them otherwise. */
export function startedBy(launcher: readonly string[]): MediaTools {
  return { ...bareTools, starterPath: undefined, launcher };
}

export const noAbort = new AbortController().signal;

/** As it is for one output. */
export interface OneOptions extends Omit<ExtractOptions, 'outputs'> {
  readonly plan: OutputPlan;
  readonly outputPath: string;
}

export interface OneExtraction
  extends Omit<Extraction, 'files'>,
    Pick<Extraction['files'][number], 'loudness'> {
  readonly output: Extraction['files'][number];
}

export async function extractOne({ plan, outputPath, ...options }: OneOptions): Promise<OneExtraction> {
  const { files, ...others } = await extractAudio({ ...options, outputs: [{ plan, path: outputPath }] });
  const [output] = files;
  if (output === undefined) throw new Error('no file was made');
  return { ...others, output, loudness: output.loudness };
}

/** @param request an output as a client writes it. */
export async function extract(
  input: string,
  outputPath: string,
  request: Record<string, unknown>,
  options: Partial<OneOptions> = {},
): Promise<OneExtraction> {
  const probed = await probe(tools, input, { signal: noAbort });
  const plan = planOutput(OutputRequest.parse(request), probed);
  return extractOne({
    ...{ tools, input, probe: probed, plan, outputPath, signal: noAbort, maxAudioSeconds: 3600 },
    ...options,
  });
}

/**
 * Several outputs of one source, as one job makes them: the file of each at the path of the same
 * place.
 */
export async function extractSeveral(
  input: string,
  wanted: readonly { readonly path: string; readonly request: Record<string, unknown> }[],
  options: Partial<ExtractOptions> = {},
): Promise<Extraction> {
  const probed = await probe(tools, input, { signal: noAbort });
  const [first, ...others] = wanted.map(({ path, request }) => ({
    path,
    plan: planOutput(OutputRequest.parse(request), probed),
  }));
  if (first === undefined) throw new Error('no output was asked for');
  return extractAudio({
    ...{ tools, input, probe: probed, outputs: [first, ...others], signal: noAbort, maxAudioSeconds: 3600 },
    ...options,
  });
}
