/** Sends the result of a job into a chat, at most once unless the operator chose otherwise (decisions C). */
import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'soundpost-base/logger';
import type { VoiceTry as ObservedTry, Observer } from 'soundpost-kit/observe/metrics/observer';
import { noTracing, type Tracing } from 'soundpost-kit/observe/tracing/tracing';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { UrlSigner } from 'soundpost-kit/signing/signed-url';
import { ObjectNotFound, type Storage } from 'soundpost-kit/storage/storage';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import type { Announced, Try } from '../../jobs/announcement-tries.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { notePartId } from '../../jobs/names.ts';
import type { VoiceNotePart, VoiceOutcome, VoicePayload } from '../../jobs/payloads.ts';
import { beginSending, endSending, raiseMessageStatus } from '../../jobs/voice-state.ts';
import { type GatewaySettings, type SendAnswer, sendVoiceMessage } from './gateway-client.ts';

interface VoiceServices {
  readonly redis: Redis;
  readonly storage: Storage;
  readonly signer: UrlSigner;
  readonly gateway: GatewaySettings;
  /** With another server's gateway: what becomes of a message whose answer was lost. */
  readonly onUnknown: 'keep' | 'resend';
  readonly workspaces: Workspaces;
  readonly keepStatusSeconds: number;
  readonly logger: Logger;
  readonly readJob: (jobId: string) => Promise<JobRecord | undefined>;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
}

const observedTry: Readonly<Record<SendAnswer['kind'], ObservedTry>> = {
  sent: 'sent',
  'not-now': 'not_now',
  refused: 'refused',
  lost: 'lost',
};

export async function deliverVoice(
  payload: VoicePayload,
  attempt: Try,
  services: VoiceServices,
): Promise<Announced<VoiceOutcome>> {
  const logger = services.logger.child({ jobId: payload.jobId });
  const announced = await tryToDeliver(payload, attempt, { ...services, logger });
  if (announced.outcome === 'done') services.observer?.voiceEnded(announced.result.status);
  return announced;
}

async function tryToDeliver(
  { jobId, sendId, part, request }: VoicePayload,
  attempt: Try,
  services: VoiceServices,
): Promise<Announced<VoiceOutcome>> {
  const partId = notePartId(sendId, part);
  const record = await services.readJob(jobId);
  // A job that did not ask for a voice message has no rendition; the gateway makes one of any audio.
  const storageKey = record?.result?.voice?.storageKey ?? record?.result?.outputFile.storageKey;
  if (record?.result == null || storageKey === undefined) {
    return failed('FILE_EXPIRED', 'the voice rendition is no longer available');
  }
  const { result } = record;
  return services.workspaces.use('voice', async (workspace) => {
    const note = result.voice?.parts?.[part];
    const path = await localFile(services.storage, storageKey, note, workspace).catch(orMissing);
    // Noted as late as possible: what goes wrong before this line leaves no doubt whether the message was sent.
    const { wasSending } = await beginSending(services.redis, partId);
    if (wasSending && !mayRepeat(services)) {
      return unknown('the worker ended while the message was being sent');
    }
    if (path === undefined) {
      const missing = 'the voice rendition is no longer available';
      return wasSending ? unknown(missing) : failed('FILE_EXPIRED', missing);
    }
    const rendition = result.voice ? 'voice' : 'output';
    const file = {
      path,
      sizeBytes: (await stat(path)).size,
      isNote: result.voice !== null || result.outputFile.format === 'voice',
      url: services.signer.downloadUrl(jobId, Date.parse(result.outputFile.expiresAt), rendition),
    };
    // The gateway's own record of this key is what makes a repetition safe.
    const startedAt = performance.now();
    const tracing = services.tracing ?? noTracing;
    const answer = await tracing.span(
      'POST voice message',
      { 'http.request.method': 'POST', 'server.address': new URL(services.gateway.url).hostname },
      async (note) => {
        const context = services.gateway.kind === 'soundpost' ? tracing.headersFor('ours') : {};
        const idempotencyKey = `${partId}:${request.number}`;
        const answered = await sendVoiceMessage(services.gateway, request, file, idempotencyKey, context);
        note({ 'soundpost.outcome': answered.kind });
        return answered;
      },
      'client',
    );
    services.observer?.voiceTried(observedTry[answer.kind], (performance.now() - startedAt) / 1000);
    return conclude(answer, partId, { ...attempt, earlierLost: wasSending }, services);
  });
}

/** The whole of what is stored, or a note of a run in a file of its own. */
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

interface VoiceTry extends Try {
  /** What became of an earlier try is not known: its message may be in the chat. */
  readonly earlierLost: boolean;
}

async function conclude(
  answer: SendAnswer,
  partId: string,
  attempt: VoiceTry,
  services: VoiceServices,
): Promise<Announced<VoiceOutcome>> {
  switch (answer.kind) {
    case 'sent': {
      const { key, messageStatus } = answer;
      // Also keeps what the gateway may have told already for as long as the job.
      await raiseMessageStatus(services.redis, key.id, messageStatus, services.keepStatusSeconds);
      return { outcome: 'done', result: { status: 'sent', key, messageStatus, error: null } };
    }
    case 'refused':
      return attempt.earlierLost ? unknown(answer.message) : failed(answer.code, answer.message);
    case 'not-now':
      // The mark of an earlier try stays: what this answer says is true of this try only.
      if (!attempt.earlierLost) await endSending(services.redis, partId);
      if (!attempt.last) {
        return { outcome: 'retry', error: answer.error, retryAfterSeconds: answer.retryAfterSeconds };
      }
      return attempt.earlierLost ? unknown(answer.error) : failed('GATEWAY_UNAVAILABLE', answer.error);
    case 'lost':
      services.logger.warn(
        { sendId: partId, error: answer.error },
        'nobody knows whether the voice message was sent',
      );
      return mayRepeat(services) && !attempt.last
        ? { outcome: 'retry', error: answer.error }
        : unknown(answer.error);
  }
}

function failed(code: string, message: string): Announced<VoiceOutcome> {
  return {
    outcome: 'done',
    result: { status: 'failed', key: null, messageStatus: null, error: { code, message } },
  };
}

function unknown(message: string): Announced<VoiceOutcome> {
  const error = { code: 'ANSWER_LOST', message };
  return { outcome: 'done', result: { status: 'unknown', key: null, messageStatus: null, error } };
}
