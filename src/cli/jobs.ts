/** `jobs list | show | watch | download | cancel | retry`: the jobs of a key, at a service. */
import type { SoundpostClient } from 'soundpost-client/client';
import type { AnyOutputFile, Job, JobStatus, OutputFile } from 'soundpost-contract/job';
import { isProbe, outputsOf } from 'soundpost-contract/output-request';
import { terminalKind } from '../process/config.ts';
import { UsageError } from './ending.ts';
import { download } from './extract-on-server.ts';
import { interruptible } from './interrupt.ts';
import { probeText } from './probe-answer.ts';
import { progressOn, reportOf } from './progress.ts';
import { anyServer } from './server.ts';
import type { Streams } from './streams.ts';
import { chooseTarget, deliver } from './target.ts';
import { fields, table } from './terminal-text.ts';
import { awaitTranscript } from './transcript.ts';

export type OnServer = Parameters<typeof anyServer>[0] & {
  readonly json?: boolean;
};

interface JobListChoices extends OnServer {
  readonly status?: JobStatus;
  readonly search?: string;
  /** A number as text. */
  readonly limit: string;
}

interface DownloadChoices extends OnServer {
  /** Of an output. */
  readonly name?: string;
  readonly output?: string;
  readonly force?: boolean;
}

/** Of a single request. */
const LONGEST_PAGE = 100;

export async function listJobs(choices: JobListChoices): Promise<string> {
  const { client } = anyServer(choices);
  const jobs = await interruptible((signal) => pages(client, choices, signal));
  if (choices.json) return JSON.stringify({ jobs });
  const rows = jobs.map((job) => [
    job.jobId,
    stateOf(job),
    isProbe(job)
      ? 'probe'
      : outputsOf(job)
          .map(({ format }) => format)
          .join('+'),
    job.createdAt.slice(0, 19).replace('T', ' '),
    job.inputFile?.name ?? job.source.name ?? job.source.url ?? job.source.file ?? '',
  ]);
  return table(['JOB', 'STATE', 'FORMAT', 'CREATED (UTC)', 'VIDEO'], rows);
}

async function pages(
  client: SoundpostClient,
  { status, search, limit }: JobListChoices,
  signal: AbortSignal,
): Promise<Job[]> {
  const wanted = Number(limit);
  if (!Number.isInteger(wanted) || wanted < 1) {
    throw new UsageError(`--limit: "${limit}" is not a number of jobs; use 1 or more`);
  }
  const jobs: Job[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.jobs({
      ...(status === undefined ? {} : { status }),
      ...(search === undefined ? {} : { q: search }),
      ...(cursor === undefined ? {} : { cursor }),
      limit: Math.min(wanted - jobs.length, LONGEST_PAGE),
      signal,
    });
    jobs.push(...page.jobs);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && jobs.length < wanted);
  return jobs;
}

export async function showJob(jobId: string, choices: OnServer): Promise<string> {
  return described(await anyServer(choices).client.job(jobId), choices);
}

/** Ends with the job; Ctrl-C ends only the watching. Throws the error of a failed job. */
export async function watchJob(jobId: string, choices: OnServer, { stderr }: Streams): Promise<string> {
  const { client } = anyServer(choices);
  const progress = progressOn(stderr, { quiet: false, terminalKind });
  const job = await interruptible((signal) =>
    client
      .waitFor<OutputFile | null>(jobId, { signal, onProgress: (seen) => progress.show(reportOf(seen)) })
      .finally(() => progress.end()),
  );
  return described(job, choices);
}

export async function downloadJob(
  jobId: string,
  choices: DownloadChoices,
  streams: Streams,
): Promise<string | undefined> {
  const server = anyServer(choices);
  const target = await chooseTarget(choices, '.', streams);
  const file = await interruptible(async (signal) => {
    const job = await server.client.waitFor<OutputFile | null>(jobId, { signal });
    // A job of the transcription door has a transcript alone.
    const [only] = job.outputFile === null ? (job.transcripts ?? []) : [];
    const wanted = choices.name ?? only?.name;
    const isTranscript = job.transcripts?.some(({ name }) => name === wanted) ?? false;
    const made = isTranscript ? await awaitTranscript(server, jobId, signal, wanted) : namedFile(job, wanted);
    return deliver(target, await download(server, jobId, made, signal), made.filename, signal);
  });
  if (choices.json) return JSON.stringify({ file, jobId });
  return file ?? undefined;
}

function namedFile({ jobId, outputFile, outputFiles }: Job, name: string | undefined): AnyOutputFile {
  if (outputFile === null) {
    throw new UsageError(
      `${jobId} is a probe, which makes no file; see what it found with "soundpost jobs show ${jobId}"`,
    );
  }
  const found = name === undefined ? outputFile : outputFiles.find((file) => file.name === name);
  if (found === undefined) {
    const names = outputFiles.map((file) => file.name).join(', ');
    throw new UsageError(`--name: the job has no output "${name}"; its outputs: ${names}`);
  }
  return found;
}

export async function cancelJob(jobId: string, choices: OnServer): Promise<string> {
  const job = await anyServer(choices).client.cancel(jobId);
  if (choices.json) return JSON.stringify(job);
  return job.status === 'completed' ? `deleted the files of ${jobId}` : `cancelled ${jobId}`;
}

export async function retryJob(jobId: string, choices: OnServer): Promise<string> {
  const accepted = await anyServer(choices).client.retry(jobId);
  return choices.json ? JSON.stringify(accepted) : accepted.jobId;
}

function described(job: Job, { json }: OnServer): string {
  if (json) return JSON.stringify(job);
  const { outputFile: made, outputFiles: files, transcripts = [], voiceMessage: voice, webhook } = job;
  const [, ...others] = files;
  const about = fields([
    ['job', job.jobId],
    ['state', stateOf(job)],
    ['step', job.status === 'completed' ? undefined : (job.currentStep ?? undefined)],
    ['error', job.error && `${job.error.code}: ${job.error.message}${detailsOf(job.error.details)}`],
    ['video', job.inputFile?.name ?? job.source.name ?? job.source.url ?? job.source.file],
    ['audio', made && `${made.filename}: ${made.format}, ${made.duration.toFixed(2)} s, ${made.bitrate}`],
    ['size', made && `${made.size} bytes`],
    ...others.map(({ name, filename, format, size }): [string, string] => [
      name,
      `${filename}: ${format}, ${size} bytes`,
    ]),
    ['kept until', made?.expiresAt],
    ['voice message', voice && `${voice.status}${detailsOf(voice.error?.message)}`],
    ...transcripts.map(({ name, status, error }): [string, string] => [
      `transcript ${name}`,
      `${status}${detailsOf(error?.details ?? error?.message)}`,
    ]),
    ...files.flatMap(({ name, destination: place }): [string, string][] =>
      place
        ? [[`destination of ${name}`, `${place.status}${detailsOf(place.error?.message ?? place.url)}`]]
        : [],
    ),
    [
      'webhook',
      webhook && `${webhook.status} after ${webhook.attempts} attempts${detailsOf(webhook.lastError)}`,
    ],
    ['created', job.createdAt],
    ['finished', job.finishedAt ?? undefined],
    ['retry of', job.retryOf ?? undefined],
  ]);
  const { inputFile, warnings } = job;
  return isProbe(job) && inputFile !== null ? `${about}\n\n${probeText({ inputFile, warnings })}` : about;
}

function detailsOf(text: string | null | undefined): string {
  return text ? ` (${text})` : '';
}

/** Shows a cancelled job as such, like the console. */
function stateOf({ status, progress, error }: Job): string {
  if (error?.code === 'JOB_CANCELLED') return 'cancelled';
  return status === 'processing' ? `${status} ${progress} %` : status;
}
