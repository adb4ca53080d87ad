/** The tools about jobs. Each answers the job's id within a minute, however long the job takes. */
import { createHash, randomUUID } from 'node:crypto';
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { type Deadline, deadline } from 'soundpost-base/deadline';
import type { SoundpostClient } from 'soundpost-client/client';
import { SoundpostError } from 'soundpost-client/error';
import { JobId, OutputName } from 'soundpost-contract/ids';
import {
  DataSource,
  type JobRequest,
  UploadSource,
  UrlSource,
  VoiceMessageRequest,
} from 'soundpost-contract/job-request';
import { OutputRequest, TranscriptRequest } from 'soundpost-contract/output-request';
import { z } from 'zod';
import { acceptedJob, answerOf, follow, isOver, JobAnswer, type KnownJob } from './jobs.ts';
import { answering, type Call, ToolFailure } from './tool-answer.ts';

type Request = z.input<typeof JobRequest>;

/** Makes a job, and changes nothing that is there. */
const MAKES_A_JOB = { readOnlyHint: false, destructiveHint: false, openWorldHint: true };
const ONLY_READS = { readOnlyHint: true, openWorldHint: false };

const source = {
  url: UrlSource.shape.url
    .optional()
    .describe('Where the video is: http(s) address of the file, or of an HLS or DASH stream. No web page'),
  headers: UrlSource.shape.headers,
  upload: UploadSource.shape.file.optional().describe('In place of url: an upload, upl_<16 hex>'),
  data: DataSource.shape.data
    .optional()
    .describe('In place of url: the video in base64 or as a data URI, at most 8 MiB decoded'),
};
type Source = z.infer<z.ZodObject<typeof source>>;

/** The API has the rules for its characters: not every client knows the patterns that they take. */
const filename = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .describe('Name of the file, without extension. Default: the name of the source');

const job = { jobId: JobId.describe('As a tool answered it, job_<16 hex>') };

/** @param waitMs how long a tool waits for the end of a job */
export function jobTools(server: McpServer, client: SoundpostClient, waitMs: number): void {
  const tools = new JobTools(client, waitMs);
  extractTools(server, tools);
  server.registerTool(
    'status',
    {
      title: 'Status of a job',
      description:
        'How far a job is; when it has completed, its files, transcript and voice message. A failed job is answered as an error that says why.',
      inputSchema: {
        ...job,
        waitSeconds: z
          .int()
          .min(0)
          .max(50)
          .default(0)
          .describe('How long to wait for the end of the job, in seconds. Default 0: answer at once'),
      },
      outputSchema: JobAnswer,
      annotations: ONLY_READS,
    },
    answering(({ jobId, waitSeconds }, call) => tools.status(jobId, waitSeconds * 1000, call)),
  );
  server.registerTool(
    'download_link',
    {
      title: 'Download link',
      description:
        'A link that downloads a file of a completed job without a key, until expiresAt. Anyone with the link can download the file.',
      inputSchema: {
        ...job,
        name: OutputName.optional().describe(
          'Name of the file among the files of the job. Default: the first',
        ),
      },
      outputSchema: JobAnswer.shape.files.element.required({ url: true }),
      annotations: ONLY_READS,
    },
    answering(({ jobId, name }, call) => tools.link(jobId, name, call)),
  );
  sendTool(server, tools);
}

function extractTools(server: McpServer, tools: JobTools): void {
  const { format, quality, bitrate, normalize, loudness, track, channel, start, end, acceptTruncated } =
    OutputRequest.shape;
  server.registerTool(
    'extract',
    {
      title: 'Extract audio',
      description:
        'Takes the audio out of a video or audio file. Give exactly one of url, upload and data. Waits up to 50 seconds; a longer job goes on, and status tells its end.',
      inputSchema: {
        ...source,
        ...{ quality, bitrate, normalize, loudness, track, channel, start, end, acceptTruncated },
        format: format.default('mp3'),
        filename,
      },
      outputSchema: JobAnswer,
      annotations: MAKES_A_JOB,
    },
    answering(({ url, headers, upload, data, filename, ...output }, call) =>
      tools.run({ source: sourceOf({ url, headers, upload, data }), output, options: { filename } }, call),
    ),
  );
  server.registerTool(
    'probe',
    {
      title: 'Probe a video',
      description:
        'Says what audio a video holds: duration, container, tracks with codec and language. Makes no file. Give exactly one of url, upload and data.',
      inputSchema: source,
      outputSchema: JobAnswer,
      annotations: MAKES_A_JOB,
    },
    answering((from, call) => tools.run({ source: sourceOf(from), output: { format: 'probe' } }, call)),
  );
  const { subtitles, language } = TranscriptRequest.shape;
  server.registerTool(
    'transcribe',
    {
      title: 'Transcribe',
      description:
        'Transcribes the speech of a video or audio file. Give exactly one of url, upload and data. Waits up to 50 seconds; a longer job continues, and status returns its transcript.',
      inputSchema: {
        ...source,
        ...{ language, track, start, end },
        subtitles: subtitles
          .default('txt')
          .describe(
            'txt: the words alone; vtt and srt: subtitles; json: segments with times in seconds. Default txt',
          ),
      },
      outputSchema: JobAnswer,
      annotations: MAKES_A_JOB,
    },
    answering(({ subtitles: kind, language: spoken, track: one, start: from, end: to, ...given }, call) => {
      const cut = { track: one, start: from, end: to };
      return tools.run(
        {
          source: sourceOf(given),
          outputs: [
            // A job makes audio first: of most videos this one is copied.
            { name: 'audio', format: 'm4a', ...cut },
            { name: 'transcript', format: 'transcript', subtitles: kind, language: spoken, ...cut },
          ],
        },
        call,
      );
    }),
  );
}

function sendTool(server: McpServer, tools: JobTools): void {
  const { instance, number, delay } = VoiceMessageRequest.shape;
  server.registerTool(
    'send_voice_message',
    {
      title: 'Send as a voice message',
      description:
        'Sends the audio of a completed job into a chat as a voice message. It reaches a person and cannot be undone. The same call within 24 hours sends nothing new, unless again is true.',
      inputSchema: {
        ...job,
        ...{ instance, number, delay },
        again: z.boolean().default(false).describe('Send the same message again. Default false'),
      },
      outputSchema: JobAnswer,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    },
    answering(({ jobId, again, ...request }, call) => tools.send(jobId, request, again, call)),
  );
}

class JobTools {
  readonly #client: SoundpostClient;
  readonly #waitMs: number;

  constructor(client: SoundpostClient, waitMs: number) {
    this.#client = client;
    this.#waitMs = waitMs;
  }

  // Each awaits what it returns: its time would be over with the function.
  async run(request: Request, call: Call): Promise<JobAnswer> {
    using time = this.#time(call, 'Soundpost has not accepted the job yet. Call the tool again.');
    const { jobId } = await this.#client.extract(request, { signal: time.signal });
    return succeeded(await this.#followed(acceptedJob(jobId), time.signal, call));
  }

  async status(jobId: string, waitMs: number, call: Call): Promise<JobAnswer> {
    using time = this.#time(call, 'Soundpost has not answered in time. Call status again.');
    const now = await this.#client.status(jobId, { signal: time.signal });
    if (waitMs === 0 || isOver(now)) return answerOf(this.#client, now);
    using wait = deadline(waitMs, { signal: time.signal });
    return await this.#followed(now, wait.signal, call);
  }

  async link(jobId: string, name: string | undefined, call: Call): Promise<Record<string, unknown>> {
    using time = this.#time(call, 'Soundpost has not answered in time. Call download_link again.');
    const { signal } = time;
    // The API says what hinders a download: not finished, expired, no such name.
    const first = await this.#client.download(jobId, { name, range: { start: 0, end: 0 }, signal });
    await first.body?.cancel();
    const { files } = await answerOf(this.#client, await this.#client.status(jobId, { signal }));
    const file = name === undefined ? files[0] : files.find((one) => one.name === name);
    if (file?.url === undefined) throw new ToolFailure('The file is no longer there. Extract it again.');
    return file;
  }

  async send(jobId: string, request: z.input<typeof VoiceMessageRequest>, again: boolean, call: Call) {
    using time = this.#time(call, 'Soundpost has not answered in time. Call status before you send again.');
    // An agent that lost an answer calls again: the same key sends once.
    const said = createHash('sha256')
      .update(JSON.stringify([jobId, request]))
      .digest('hex');
    const idempotencyKey = again ? randomUUID() : `mcp-${said}`;
    const sending = { signal: time.signal, idempotencyKey };
    const { voiceMessage } = await this.#client.sendVoiceMessage(jobId, request, sending);
    const known = { ...acceptedJob(jobId), status: 'completed', progress: 100, voiceMessage } as const;
    return succeeded(await this.#followed(known, time.signal, call));
  }

  #time({ signal }: Call, late: string): Deadline {
    return deadline(this.#waitMs, { signal, reason: () => new ToolFailure(late) });
  }

  /** Throws what the job failed with, and names the job. */
  async #followed(known: KnownJob, time: AbortSignal, call: Call): Promise<JobAnswer> {
    const following = { caller: call.signal, onProgress: reporter(call) };
    const reached = await follow(this.#client, known, time, following).catch((error) => {
      const isJobs = error instanceof SoundpostError && error.httpStatus === 200;
      throw isJobs ? new ToolFailure(`${error.message} Job ${known.jobId} has failed.`) : error;
    });
    return answerOf(this.#client, reached);
  }
}

/** @throws ToolFailure if what the tool was asked for has failed, though the job has completed */
function succeeded(answer: JobAnswer): JobAnswer {
  const { jobId, transcript, voiceMessage } = answer;
  const failed =
    transcript?.status === 'failed' || ['failed', 'unknown'].includes(voiceMessage?.status ?? '');
  if (!failed) return answer;
  const why = voiceMessage?.error ?? transcript?.error ?? 'Soundpost says no reason.';
  throw new ToolFailure(`${why} Job ${jobId}. ${answer.next}`);
}

/** Tells a caller who asked for it how far the job is, in percent that only go up. */
function reporter({ _meta, sendNotification }: Call): (job: { progress: number; status: string }) => void {
  let told = -1;
  return ({ progress, status }) => {
    if (_meta?.progressToken === undefined || progress <= told) return;
    told = progress;
    const params = { progressToken: _meta.progressToken, progress, total: 100, message: status };
    // A caller that has left hears nothing.
    sendNotification({ method: 'notifications/progress', params }).catch(() => undefined);
  };
}

function sourceOf({ url, headers, upload, data }: Source): Request['source'] {
  if ([url, upload, data].filter((given) => given !== undefined).length !== 1) {
    throw new ToolFailure('Give exactly one of url, upload and data.');
  }
  if (headers !== undefined && url === undefined) throw new ToolFailure('headers go with url alone.');
  if (upload !== undefined) return { type: 'upload', file: upload };
  if (data !== undefined) return { type: 'data', data };
  return { type: 'url', url: url ?? '', headers };
}
