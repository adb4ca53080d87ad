/** Sends a result to a chat, at most once by default (decisions C). Loads its client on demand. */
import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'soundpost-base/logger';
import { outputFormats } from 'soundpost-contract/formats';
import type { VoiceMessageRequest } from 'soundpost-contract/job-request';
import type { VoiceTry as ObservedTry, Observer } from 'soundpost-kit/observe/metrics/observer';
import { noTracing, type Tracing } from 'soundpost-kit/observe/tracing/tracing';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { UrlSigner } from 'soundpost-kit/signing/signatures';
import { ObjectNotFound, type Storage } from 'soundpost-kit/storage/storage';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { clearSending, isVoiceConfirmed, noteMayBeSent } from '../../jobs/bullmq-internals.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { notePartId, webhookId } from '../../jobs/names.ts';
import {
  type ExtractResult,
  type VoiceNotePart,
  type VoiceOutcome,
  VoicePayload,
} from '../../jobs/payloads.ts';
import type { JobFollowUps } from '../job-followups.ts';
import { type Attempt, type FollowUpKind, scheduled, type Tried, VOICE_SCHEDULE_SECONDS } from '../kind.ts';
import { beginSending, raiseMessageStatus, readVoice, reasonOf } from '../state/voice.ts';
import type { GatewaySettings, SendAnswer } from './gateway-client.ts';

interface VoiceServices {
  readonly redis: Redis;
  readonly storage: Storage;
  readonly signer: UrlSigner;
  readonly gateway: GatewaySettings;
  /** For another server's gateway: what to do when a message's answer was lost. */
  readonly onUnknown: 'keep' | 'resend';
  readonly workspaces: Workspaces;
  /** How long a job's record, its message's status and the log of attempts are kept. */
  readonly logSeconds: number;
  readonly logger: Logger;
  readonly readJob: (jobId: string) => Promise<JobRecord | undefined>;
  readonly followUps: Pick<JobFollowUps, 'addVoice' | 'addWebhook'>;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
}

interface Rendition {
  readonly outputFile: NonNullable<ExtractResult['outputFile']>;
  readonly voice: ExtractResult['voice'];
  readonly storageKey: string;
}

const observedTry: Readonly<Record<SendAnswer['kind'], ObservedTry>> = {
  sent: 'sent',
  'not-now': 'not_now',
  refused: 'refused',
  lost: 'lost',
};

/** Concurrent sends of all processes. A gateway answers within 165 s. */
const PLACES = { name: 'voice', perKey: 16, perHost: 8, leaseMs: 4 * 60_000 } as const;
/** A delayed message waits up to 60 s more at the gateway, in slots of its own. */
const DELAY_PLACES = { name: 'voice-delay', perKey: 256, perHost: 128, leaseMs: 5 * 60_000 } as const;

export function voiceKind(services: VoiceServices): FollowUpKind<VoicePayload, Rendition, VoiceOutcome> {
  const { observer, logSeconds } = services;
  const counted = (tried: Tried<VoiceOutcome>): Tried<VoiceOutcome> => {
    if (tried.outcome === 'done') observer?.voiceEnded(tried.result.status);
    return tried;
  };
  return {
    payload: VoicePayload,
    isWanted: async ({ isAsked, sendId, part }) =>
      !isAsked || (await isVoiceConfirmed(services.redis, notePartId(sendId, part))),
    async prepare({ jobId }) {
      const record = await services.readJob(jobId);
      // Without a voice message request there is no rendition; the gateway converts any audio.
      const { outputFile = null, voice = null } = record?.result ?? {};
      return outputFile === null
        ? counted(failed('FILE_EXPIRED', MISSING))
        : { ready: { outputFile, voice, storageKey: (voice ?? outputFile).storageKey } };
    },
    try: async (rendition, payload, attempt, signal) => {
      const logger = services.logger.child({ jobId: payload.jobId });
      return counted(await sendVoice(rendition, payload, attempt, signal, { ...services, logger }));
    },
    schedule: scheduled(VOICE_SCHEDULE_SECONDS),
    turn: async ({ tenant, request: { instance, delay } }) => ({
      key: tenant,
      host: instance,
      places: delay ? DELAY_PLACES : PLACES,
    }),
    ended: (payload, outcome, { number }) => addNext(payload, outcome, number, services),
    jobOf: ({ jobId }) => jobId,
    logSeconds,
  };
}

const MISSING = 'the voice rendition is no longer available';

/** The run's next note, or the webhook of its end. */
async function addNext(
  { tenant, jobId, sendId, part, round, request }: VoicePayload,
  outcome: VoiceOutcome | undefined,
  attempts: number,
  { redis, readJob, followUps }: VoiceServices,
): Promise<void> {
  const record = await readJob(jobId);
  if (record === undefined) return;
  const voiceMessage = await readVoice(redis, record, sendId, outcome && { part, outcome, attempts });
  const { parts = [] } = voiceMessage;
  // Not always the one after it: those may be sent, if this note was sent again.
  const next = parts.findIndex(({ status }) => status !== 'sent');
  if (outcome?.status === 'sent' && next >= 0) {
    // A note that the network gave up stops the run, and is announced with that event.
    if (next <= part) return;
    const isOpen = parts[next]?.status === 'pending' || parts[next]?.status === 'sending';
    if (isOpen) return followUps.addVoice({ tenant, jobId, sendId, part: next, request });
  }
  if (record.payload.options.webhook === undefined) return;
  await followUps.addWebhook(record, {
    deliveryId: webhookId(`${notePartId(sendId, part)}${round === 0 ? '' : `-${round}`}`),
    event: 'voice.updated',
    voiceMessage,
  });
}

async function sendVoice(
  { outputFile, voice, storageKey }: Rendition,
  payload: VoicePayload,
  attempt: Attempt,
  signal: AbortSignal,
  services: VoiceServices,
): Promise<Tried<VoiceOutcome>> {
  const { jobId, sendId, part, keyRound } = payload;
  const request = part === 0 ? payload.request : withoutContext(payload.request);
  const { redis, storage, signer, gateway, tracing = noTracing, observer } = services;
  const partId = notePartId(sendId, part);
  return services.workspaces.use('voice', async (workspace) => {
    const { sendVoiceMessage } = await import('./gateway-client.ts');
    const note = voice?.parts?.[part];
    const path = await localFile(storage, storageKey, note, workspace).catch(orMissing);
    signal.throwIfAborted();
    // Recorded as late as possible: an earlier failure leaves no doubt that nothing was sent.
    const { wasSending } = await beginSending(redis, partId);
    if (wasSending && !mayRepeat(services)) {
      return unknown('the worker ended while the message was being sent');
    }
    if (path === undefined) return wasSending ? unknown(MISSING) : failed('FILE_EXPIRED', MISSING);
    const rendition = voice ? 'voice' : 'output';
    const isNote = voice !== null || outputFile.format === 'voice';
    const file = {
      path,
      sizeBytes: (await stat(path)).size,
      isNote,
      mediaType: outputFormats[isNote ? 'voice' : outputFile.format].mediaType,
      seconds: note?.seconds ?? voice?.seconds ?? outputFile.duration,
      url: signer.downloadUrl(jobId, Date.parse(outputFile.expiresAt), rendition),
    };
    // The gateway's own record of this key makes a repetition safe.
    const startedAt = performance.now();
    const answer = await tracing.span(
      'POST voice message',
      { 'http.request.method': 'POST', 'server.address': new URL(gateway.url).hostname },
      async (note) => {
        const context = gateway.kind === 'soundpost' ? tracing.headersFor('ours') : {};
        const key = `${partId}${keyRound === undefined ? '' : `-${keyRound}`}:${request.number}`;
        const answered = await sendVoiceMessage(gateway, request, file, key, {
          context,
          // A send that cannot be repeated is not aborted: its outcome would be unknown.
          ...(mayRepeat(services) && { signal }),
        });
        note({ 'soundpost.outcome': answered.kind });
        return answered;
      },
      'client',
    );
    const ms = performance.now() - startedAt;
    observer?.voiceTried(observedTry[answer.kind], ms / 1000);
    const tried = await conclude(answer, payload, { ...attempt, earlierLost: wasSending }, services);
    return { ...tried, httpStatus: answer.httpStatus, latencyMs: Math.round(ms) };
  });
}

/** A run quotes and mentions once, in its first note. */
function withoutContext({
  quoted: _,
  mentioned: _mentioned,
  mentionsEveryOne: _all,
  ...request
}: VoiceMessageRequest): VoiceMessageRequest {
  return request;
}

/** The stored file, or one note of a run as a separate file. */
async function localFile(
  storage: Storage,
  key: string,
  note: VoiceNotePart | undefined,
  workspace: string,
): Promise<string> {
  if (note === undefined) return storage.localCopy(key, workspace);
  const path = join(workspace, 'note.ogg');
  const { offset, size } = note;
  await pipeline(await storage.read(key, { start: offset, end: offset + size - 1 }), createWriteStream(path));
  return path;
}

function orMissing(error: unknown): undefined {
  if (!(error instanceof ObjectNotFound)) throw error;
}

function mayRepeat({ gateway, onUnknown }: VoiceServices): boolean {
  return gateway.kind === 'soundpost' || onUnknown === 'resend';
}

interface VoiceAttempt extends Attempt {
  /** An earlier attempt's outcome is unknown: its message may be in the chat. */
  readonly earlierLost: boolean;
}

async function conclude(
  answer: SendAnswer,
  payload: VoicePayload,
  attempt: VoiceAttempt,
  services: VoiceServices,
): Promise<Tried<VoiceOutcome>> {
  const partId = notePartId(payload.sendId, payload.part);
  switch (answer.kind) {
    case 'sent':
      return sent(answer, payload, attempt.number, services);
    case 'refused':
      return attempt.earlierLost ? unknown(answer.message) : failed(answer.code, answer.message);
    case 'not-now':
      // An earlier attempt's mark stays: this answer covers only this attempt.
      if (!attempt.earlierLost) await clearSending(services.redis, partId);
      if (!attempt.last) {
        const error = reasonOf(answer.code, answer.message);
        return { outcome: 'retry', error, retryAfterSeconds: answer.retryAfterSeconds };
      }
      return attempt.earlierLost ? unknown(answer.message) : failed('GATEWAY_UNAVAILABLE', answer.message);
    case 'lost':
      services.logger.warn(
        { sendId: partId, error: answer.message },
        'nobody knows whether the voice message was sent',
      );
      // Asked for again, it needs another key: this one gets the same answer.
      if (answer.isFinal) await noteMayBeSent(services.redis, partId);
      return attempt.last || answer.isFinal || !mayRepeat(services)
        ? unknown(answer.message)
        : { outcome: 'retry', error: reasonOf('ANSWER_LOST', answer.message) };
  }
}

async function sent(
  { key, messageStatus }: Extract<SendAnswer, { kind: 'sent' }>,
  { jobId, sendId, part, round }: VoicePayload,
  attempts: number,
  { redis, logSeconds, logger }: VoiceServices,
): Promise<Tried<VoiceOutcome>> {
  const report = { id: key.id, status: messageStatus, origin: { jobId, sendId, part, round, key, attempts } };
  // Also keeps a status that the gateway has already reported, for as long as the job.
  const now = await raiseMessageStatus(redis, report, logSeconds).catch((error) => {
    // It is sent all the same.
    logger.warn({ err: error }, 'the status of a voice message could not be kept');
  });
  if (now?.status !== 'ERROR') {
    return { outcome: 'done', result: { status: 'sent', key, messageStatus, error: null } };
  }
  const { error, status } = now;
  const result = { status: 'failed', key, messageStatus: status, error } as const;
  return { outcome: 'done', result, error: error.message };
}

function failed(code: string, message: string): Tried<VoiceOutcome> {
  return endedWith('failed', code, message);
}

function unknown(message: string): Tried<VoiceOutcome> {
  return endedWith('unknown', 'ANSWER_LOST', message);
}

function endedWith(status: 'failed' | 'unknown', code: string, message: string): Tried<VoiceOutcome> {
  const result = { status, key: null, messageStatus: null, error: { code, message } };
  return { outcome: 'done', result, error: message };
}
