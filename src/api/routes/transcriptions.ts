/**
 * The interface of OpenAI's clients: audio or video in, text out, in one request (decisions F1).
 */
import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { ServiceError } from 'soundpost-contract/errors';
import { type BatchJobRequest, JobOptions, UrlSource } from 'soundpost-contract/job-request';
import { type TranscriptionRequest, transcriptionFields } from 'soundpost-contract/output-request';
import type { TranscriptState } from 'soundpost-contract/transcripts';
import { z } from 'zod';
import { readTranscripts } from '../../followups/state/transcripts.ts';
import { languageOf } from '../../followups/transcripts/language.ts';
import type { StoredTranscript } from '../../jobs/payloads.ts';
import { spendTranscript } from '../../jobs/transcript-minutes.ts';
import { invalidForm, readParts } from '../form.ts';
import { discardAfter } from '../intake.ts';
import { acceptedJob, findJob } from '../job-answer.ts';
import { jobStates } from '../job-states.ts';
import { setRateLimit } from '../middleware/authentication.ts';
import { isRetryable, openAiErrors } from '../openai/errors.ts';
import { responseFormats, Transcription, VerboseTranscription } from '../openai/formats.ts';
import { answerLate } from '../openai/patience.ts';
import { joinOrSubmit, keepFailure, whileArriving } from '../openai/repetition.ts';
import { parseRequest } from '../request.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';
import { submitJobs } from '../submission.ts';
import { waitingPlace } from '../wait.ts';

const { prompt, temperature } = transcriptionFields;

const Fields = z.object({
  model: z.string().optional().meta({ description: 'Ignored: the operator’s model is used' }),
  language: z
    .string()
    .transform(languageOf)
    .pipe(z.string('must be a language such as en'))
    .optional()
    .meta({ description: 'The spoken language. Default: the transcriber detects it' }),
  prompt,
  temperature: z.coerce.number().pipe(temperature.unwrap()).optional(),
  response_format: z.enum(['json', 'text', 'srt', 'verbose_json', 'vtt']).default('json'),
  'timestamp_granularities[]': z.array(z.enum(['word', 'segment'])).optional(),
  url: UrlSource.shape.url
    .optional()
    .meta({ description: 'Address to download the file from, instead of sending it' }),
});
type Fields = z.infer<typeof Fields>;

type Task = 'transcribe' | 'translate';

function speechRoute(task: Task): Route {
  const isTranslation = task === 'translate';
  return {
    method: 'post',
    path: isTranslation ? '/v1/audio/translations' : '/v1/audio/transcriptions',
    access: { by: 'key', scope: 'transcribe', rate: 'submit', bearer: true },
    errors: openAiErrors,
    docs: {
      operationId: isTranslation ? 'createTranslation' : 'createTranscription',
      summary: isTranslation ? 'Translate speech to English' : 'Transcribe speech',
      description:
        "For OpenAI's clients, with audio and video of any size that an upload may have. The answer comes when the text is complete. After 15 seconds, filler keeps the connection open: spaces in JSON, line feeds in text and SRT, notes in WebVTT. A later failure breaks the connection. If you disconnect, the job is cancelled, unless you send the same file with the same fields within a minute. `stream` and fields not listed here are ignored.",
      tag: 'Transcription',
      body: {
        'multipart/form-data': z.union([
          Fields.omit({ url: true }).extend({ file: z.file().meta({ description: 'Audio or video' }) }),
          Fields.required({ url: true }),
        ]),
      },
      answers: {
        200: {
          description: 'The text, by response_format',
          content: {
            'application/json': z.union([Transcription, VerboseTranscription]),
            'text/plain': 'binary',
            'text/vtt': 'binary',
          },
          headers: { 'Soundpost-Job': 'The id of the job' },
        },
        400: {
          description: 'The request or its source is not valid',
          failures: ['DOWNLOAD_FAILED', 'EXTRACTION_FAILED', 'JOB_CANCELLED'],
        },
        500: { description: 'The transcription failed', failures: ['TRANSCRIPT_FAILED'] },
      },
      errors: [
        'INVALID_REQUEST',
        'INVALID_SOURCE',
        'INVALID_OUTPUT',
        'INVALID_VIDEO',
        'PAYLOAD_TOO_LARGE',
        'QUEUE_FULL',
      ],
    },
    handle: (context) => hear(context, task),
  };
}

export const transcriptionRoutes: readonly Route[] = [
  speechRoute('transcribe'),
  speechRoute('translate'),
  {
    method: 'get',
    path: '/v1/models',
    access: { by: 'key', scope: 'transcribe', rate: 'read', bearer: true },
    errors: openAiErrors,
    docs: {
      operationId: 'listModels',
      summary: 'List the model',
      description: 'The operator’s model. Empty without a transcriber.',
      tag: 'Transcription',
      answers: {
        200: {
          description: 'The model',
          content: {
            'application/json': z.object({
              object: z.literal('list'),
              data: z.array(
                z.object({
                  id: z.string().meta({ example: 'whisper-1' }),
                  object: z.literal('model'),
                  created: z.int().meta({ description: 'Always 0', example: 0 }),
                  owned_by: z.string().meta({ example: 'soundpost' }),
                }),
              ),
            }),
          },
        },
      },
      errors: [],
    },
    async handle({ response, services: { settings } }) {
      const model = { id: settings.transcriberModel, object: 'model', created: 0, owned_by: 'soundpost' };
      response.json({ object: 'list', data: settings.hasTranscriber ? [model] : [] });
    },
  },
];

async function hear(context: RouteContext, task: Task): Promise<void> {
  const { response, services } = context;
  if (!services.settings.hasTranscriber) {
    const remedy = 'have the operator set TRANSCRIBER_URL';
    throw new ServiceError('INVALID_REQUEST', `transcription is not set up here: ${remedy}`);
  }
  const tenant = keyOf(context).id;
  using _place = await waitingPlace(context);
  const asked = await whileArriving(services, tenant, () => receive(context, task));
  const { format, job, same } = asked;
  const left = new AbortController();
  response.once('close', () => left.abort());
  if (response.closed) left.abort();
  const waiting = await joinOrSubmit(services, tenant, same, (seed) => submit(context, job, seed)).catch(
    async (error: unknown) => {
      await asked.discard(error);
      throw error;
    },
  );
  response.set('Soundpost-Job', waiting.jobId);
  try {
    await answerLate(response, format, async () => {
      if (waiting.isJoined) await asked.discard();
      const file = await endOf(context, waiting.jobId, left.signal);
      return format.write(await text(await services.storage.read(file.storageKey)), task);
    });
    waiting.end();
  } catch (error) {
    const hasLeft = left.signal.aborted && !services.changes.closing.aborted;
    waiting[hasLeft ? 'leave' : 'end']();
    if (left.signal.aborted) return;
    if (response.headersSent && error instanceof ServiceError && !isRetryable(error)) {
      await keepFailure(services, tenant, same, error);
    }
    throw error;
  }
}

interface Asked {
  readonly format: (typeof responseFormats)[keyof typeof responseFormats];
  readonly job: BatchJobRequest;
  /** Equal for equal files with equal fields. */
  readonly same: string;
  /** Discards the file that came with the request. */
  readonly discard: (error?: unknown) => Promise<void>;
}

/** Reads the whole form, since fields may come after the file. */
async function receive(context: RouteContext, task: Task): Promise<Asked> {
  const { services } = context;
  const hash = createHash('sha256');
  const { fields, stored } = await readParts(context, hash);
  const discard = async (error?: unknown): Promise<void> => {
    if (stored !== undefined) await discardAfter(error, services, stored.file);
  };
  try {
    const parsed = parseFields(fields);
    const { url, response_format: name } = parsed;
    if ((stored === undefined) === (url === undefined)) {
      throw invalidForm('file', 'send either a file or a url');
    }
    const format = responseFormats[name];
    const source = stored === undefined ? { type: 'url' as const, url: url ?? '' } : uploadOf(stored.file);
    const output = outputOf(parsed, task, format.subtitles);
    return {
      format,
      job: { source, outputs: [output], options: JobOptions.parse({}) },
      same: JSON.stringify([task, stored ? hash.digest('hex') : url, fields.toSorted()]),
      discard,
    };
  } catch (error) {
    await discard(error);
    throw error;
  }
}

const uploadOf = (file: string) => ({ type: 'upload' as const, file });

const GRANULARITIES = 'timestamp_granularities[]';

/** Empty fields count as left out, and the brackets of the list may be missing: clients differ. */
function parseFields(fields: readonly (readonly [name: string, value: string])[]): Fields {
  const given = fields.filter(([, value]) => value !== '');
  const granularities = given.flatMap(([name, value]) =>
    [GRANULARITIES, 'timestamp_granularities'].includes(name) ? [value] : [],
  );
  return parseRequest(Fields, {
    ...Object.fromEntries(given),
    [GRANULARITIES]: granularities.length === 0 ? undefined : granularities,
  });
}

function outputOf(
  fields: Fields,
  task: Task,
  subtitles: TranscriptionOutput['subtitles'],
): TranscriptionOutput {
  const { language, prompt: said, temperature: heat, [GRANULARITIES]: granularities = [] } = fields;
  const wantsWords = fields.response_format === 'verbose_json' && granularities.includes('word');
  return {
    ...{ name: 'transcript', format: 'transcript', subtitles, prompt: said, temperature: heat },
    // A translation takes no language, and is English.
    ...(task === 'translate' ? { task } : { language }),
    ...(wantsWords && { words: true }),
  };
}
type TranscriptionOutput = z.infer<typeof TranscriptionRequest>;

function submit(context: RouteContext, request: BatchJobRequest, seed: string): Promise<unknown> {
  const { response, services } = context;
  const turn = { seed, keep: () => undefined };
  return submitJobs(services, keyOf(context), [{ request, path: '' }], null, turn, (submission) => {
    setRateLimit(response, 'submit', submission.rate);
    return acceptedJob(services.settings, submission);
  });
}

/** @throws ServiceError why there is no text, or that the service stops */
async function endOf(context: RouteContext, jobId: string, left: AbortSignal): Promise<StoredTranscript> {
  const { services } = context;
  const { changes, logger, redis } = services;
  const revoked = new AbortController();
  const unwatch = changes.watchRevocation(keyOf(context).id, () => revoked.abort());
  const look = async (): Promise<StoredTranscript | 'unfinished'> => {
    try {
      const record = await findJob(services, jobId);
      if (record === undefined) throw new ServiceError('JOB_CANCELLED', 'the job was removed');
      if (record.error !== null) throw failure(record.error);
      if (record.status !== 'completed') return 'unfinished';
      const [transcript] = await readTranscripts(redis, record);
      if (transcript?.isOverBudget) throw await minutesSpent(context, transcript.state);
      if (transcript?.state.error) throw failure(transcript.state.error);
      return transcript?.file ?? 'unfinished';
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      // The job is accepted whatever fails now.
      logger.warn({ jobId, err: error }, 'a transcription that is waited for could not be read');
      return 'unfinished';
    }
  };
  const over = AbortSignal.any([left, revoked.signal, changes.closing]);
  try {
    for await (const seen of jobStates(changes, jobId, look, over)) {
      if (seen !== 'unfinished') return seen;
    }
  } finally {
    unwatch();
  }
  if (revoked.signal.aborted) throw new ServiceError('UNAUTHORIZED', 'the API key was revoked');
  throw new ServiceError('SERVICE_UNAVAILABLE', 'the service is stopping; send the request again', {
    retryAfterSeconds: 1,
  });
}

/** Found once the length is known: before, {@link submitJobs} refuses if nothing is left. */
async function minutesSpent(context: RouteContext, { error }: TranscriptState): Promise<ServiceError> {
  const { redis, settings } = context.services;
  const { resetSeconds } = await spendTranscript(
    redis,
    keyOf(context).id,
    settings.transcriptMinutesPerDay ?? 0,
  );
  const details = error?.details === undefined ? {} : { details: error.details };
  const message = 'not enough transcript minutes of the day are left';
  return new ServiceError('RATE_LIMITED', message, { ...details, retryAfterSeconds: resetSeconds });
}

function failure({ code, message, details }: ReturnType<ServiceError['toBody']>): ServiceError {
  // The job was tried again already: the client should not.
  const final = code === 'INTERNAL_ERROR' ? 'TRANSCRIPT_FAILED' : code;
  return new ServiceError(final, message, details === undefined ? {} : { details });
}
