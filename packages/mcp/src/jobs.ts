/** Jobs as a tool waits for them and answers them. */
import { setTimeout as delay } from 'node:timers/promises';
import { within } from 'soundpost-base/deadline';
import type { SoundpostClient } from 'soundpost-client/client';
import type { AnyOutputFile, Job } from 'soundpost-contract/job';
import { z } from 'zod';

/** Between two looks at a transcript or a message, for which the service has no events of a job. */
const PAUSE_MS = 2000;

/** So that the answer comes within a minute. */
const WORDS_MS = 5000;

/** A longer transcript would fill the agent's context: it gets the address alone. */
const LONGEST_TRANSCRIPT_BYTES = 100_000;

/**
 * What tools answer of a job. Values that newer services may add to are plain strings: clients
 * check an answer against its schema. What is unknown is left out, as not all of them know null.
 */
export const JobAnswer = z.object({
  jobId: z.string().describe('Handle of the job, for status, download_link and send_voice_message'),
  status: z.string().describe('queued, processing or completed'),
  progress: z.number().describe('Percent'),
  secondsLeft: z.number().optional().describe('Estimate; only while processing'),
  input: z
    .object({
      name: z.string(),
      sizeBytes: z.number().optional(),
      durationSeconds: z.number().optional().describe('Of its audio'),
      container: z.string().optional(),
      tracks: z
        .array(
          z.object({
            index: z.number().describe('What track takes'),
            codec: z.string(),
            language: z.string().optional(),
            channels: z.number(),
            sampleRate: z.number().describe('Hz'),
            default: z.boolean(),
            decodable: z.boolean().describe('Whether it can be extracted'),
          }),
        )
        .describe('Of audio; empty: the file holds none'),
    })
    .optional()
    .describe('What the source holds, once it was analysed'),
  files: z.array(
    z.object({
      name: z.string().describe('What download_link takes as name'),
      filename: z.string(),
      format: z.string(),
      sizeBytes: z.number(),
      durationSeconds: z.number(),
      url: z.string().optional().describe('Downloads the file without a key until expiresAt'),
      expiresAt: z.string(),
    }),
  ),
  transcript: z
    .object({
      status: z.string().describe('pending, completed or failed'),
      language: z.string().optional(),
      text: z.string().optional().describe('Left out above 100 kB: download the file'),
      error: z.string().optional(),
    })
    .optional(),
  voiceMessage: z
    .object({
      status: z.string().describe('pending, sending, sent, failed or unknown'),
      error: z.string().optional(),
    })
    .optional(),
  warnings: z.array(z.string()),
  next: z.string().describe('What to do now'),
});
export type JobAnswer = z.infer<typeof JobAnswer>;

export function acceptedJob(jobId: string): KnownJob {
  return { jobId, status: 'queued', progress: 0, inputFile: null, outputFiles: [], warnings: [] };
}

/** A job, or what is known of it before its first state came. */
export type KnownJob = Pick<Job, 'jobId' | 'status' | 'progress' | 'inputFile' | 'outputFiles' | 'warnings'> &
  Partial<Pick<Job, 'estimatedTimeRemaining' | 'transcripts' | 'voiceMessage'>>;

/** Whether the job has completed, and with it what follows a job. */
export function isOver({ status, transcripts = [], voiceMessage }: KnownJob): boolean {
  return (
    status === 'completed' &&
    transcripts.every((transcript) => transcript.status !== 'pending') &&
    !isUnderway(voiceMessage?.status)
  );
}

const isUnderway = (status: string | undefined): boolean => status === 'pending' || status === 'sending';

/**
 * Waits for the end of a job, its transcripts and its voice message. Throws its error if it fails.
 * @param known answered where the time is over before anything is heard
 * @param time of the wait; when it is over, the latest state is answered
 * @param caller throws its reason when it aborts
 */
export async function follow(
  client: SoundpostClient,
  known: KnownJob,
  time: AbortSignal,
  { caller, onProgress }: { caller: AbortSignal; onProgress: (job: Job) => void },
): Promise<KnownJob> {
  let latest = known;
  try {
    latest = await client.waitFor<null>(known.jobId, {
      signal: time,
      onProgress: (job) => {
        latest = job;
        onProgress(job);
      },
    });
    while (!isOver(latest)) {
      await delay(PAUSE_MS, undefined, { signal: time });
      latest = await client.status(known.jobId, { signal: time });
    }
  } catch (error) {
    caller.throwIfAborted();
    if (!time.aborted) throw error;
  }
  return latest;
}

/** @param client reads the words of a transcript that is there */
export async function answerOf(client: SoundpostClient, job: KnownJob): Promise<JobAnswer> {
  const { jobId, status, progress, inputFile, outputFiles, warnings, voiceMessage } = job;
  const [transcript] = job.transcripts ?? [];
  const text = transcript?.status === 'completed' ? await wordsOf(client, job, transcript.name) : undefined;
  return {
    ...{ jobId, status, progress },
    ...(job.estimatedTimeRemaining === undefined ? {} : { secondsLeft: job.estimatedTimeRemaining }),
    ...(inputFile === null ? {} : { input: inputOf(inputFile) }),
    files: outputFiles.map(fileOf),
    ...(transcript && {
      transcript: {
        ...{ status: transcript.status, language: transcript.language ?? undefined },
        ...(text === undefined ? {} : { text }),
        ...(transcript.error && { error: `${transcript.error.code}: ${transcript.error.message}` }),
      },
    }),
    ...(voiceMessage && {
      voiceMessage: {
        status: voiceMessage.status,
        ...(voiceMessage.error && { error: `${voiceMessage.error.code}: ${voiceMessage.error.message}` }),
      },
    }),
    warnings: warnings.map(({ message }) => message),
    next: nextOf(job),
  };
}

function inputOf({ name, size, duration, format, tracks }: NonNullable<Job['inputFile']>) {
  return {
    ...{ name, sizeBytes: size ?? undefined, durationSeconds: duration ?? undefined },
    container: format ?? undefined,
    tracks: tracks.map(({ index, codec, language, channels, sampleRate, default: isDefault, decodable }) => ({
      ...{
        index,
        codec,
        language: language ?? undefined,
        channels,
        sampleRate,
        default: isDefault,
        decodable,
      },
    })),
  };
}

function fileOf({ name, filename, format, size, duration, url, expiresAt }: AnyOutputFile) {
  return {
    ...{ name, filename, format, sizeBytes: size, durationSeconds: duration },
    ...(url === undefined ? {} : { url }),
    expiresAt,
  };
}

/** Undefined if they are too many or do not come in time: the file has its address. */
async function wordsOf(
  client: SoundpostClient,
  { jobId, outputFiles }: KnownJob,
  name: string,
): Promise<string | undefined> {
  const file = outputFiles.find((one) => one.name === name);
  if (file?.url === undefined || file.size > LONGEST_TRANSCRIPT_BYTES) return undefined;
  const read = async (signal: AbortSignal) => (await client.download(jobId, { name, signal })).text();
  return within(WORDS_MS, read).catch(() => undefined);
}

function nextOf(job: KnownJob): string {
  const { jobId, status, progress, transcripts = [], voiceMessage } = job;
  const again = `Call status with jobId ${jobId} and waitSeconds 50.`;
  if (status !== 'completed') return `The job goes on: ${status}, ${progress} %. ${again}`;
  if (transcripts.some((transcript) => transcript.status === 'pending')) {
    return `The audio is ready, the transcript is not. ${again}`;
  }
  if (isUnderway(voiceMessage?.status)) return `The voice message is not sent yet. ${again}`;
  if (voiceMessage?.status === 'failed') {
    return 'The voice message was not sent. Call send_voice_message with again: true to try once more.';
  }
  if (voiceMessage?.status === 'unknown') {
    return 'Nobody knows whether the voice message arrived. Ask before you send it again.';
  }
  if (transcripts.some((transcript) => transcript.status === 'failed')) {
    return 'The transcript failed, and the audio is ready. Call transcribe to try once more.';
  }
  return job.outputFiles.length === 0
    ? 'The job is done.'
    : 'The job is done. The url of a file downloads it.';
}
