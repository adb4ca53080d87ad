/** POST /v1/jobs/{jobId}/voice-message: sends or resends a result to a chat (decisions A4, C). */
import { randomBytes } from 'node:crypto';
import { VoiceMessageAccepted } from 'soundpost-contract/answers';
import { ServiceError } from 'soundpost-contract/errors';
import type { VoiceMessageState } from 'soundpost-contract/job';
import { VoiceMessageRequest } from 'soundpost-contract/job-request';
import { IdempotencyHeaders } from 'soundpost-contract/request-headers';
import { readVoiceState } from '../../followups/state/voice.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { notePartId } from '../../jobs/names.ts';
import { type Answer, answerOnce } from '../answer.ts';
import { isExpired, ownedJob } from '../job-answer.ts';
import { faultsError, parseRequest, readJson } from '../request.ts';
import { keyOf, type Route, type RouteContext } from '../route.ts';
import { demandInstance, voiceFaults } from '../submission.ts';

export const voiceMessageRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/v1/jobs/:jobId/voice-message',
    access: { by: 'key', scope: 'voice', rate: 'read' },
    docs: {
      operationId: 'sendVoiceMessage',
      summary: 'Send the result of a completed job as a voice message',
      description:
        'Each call sends once, and the job shows the latest one. An Idempotency-Key makes retries safe. If one of several notes failed, sending to the same number again continues with that note. `split` and `trimSilence` are set with the job, not here.',
      tag: 'Jobs',
      headers: IdempotencyHeaders,
      body: { 'application/json': VoiceMessageRequest },
      answers: { 202: { description: 'It is being sent', data: VoiceMessageAccepted } },
      errors: [
        'INVALID_JOB_ID',
        'JOB_NOT_FOUND',
        'INVALID_REQUEST',
        'JOB_NOT_COMPLETED',
        'FILE_EXPIRED',
        'PAYLOAD_TOO_LARGE',
        'UNSUPPORTED_MEDIA_TYPE',
        'IDEMPOTENCY_IN_PROGRESS',
        'IDEMPOTENCY_MISMATCH',
      ],
    },
    handle: send,
  },
];

async function send(context: RouteContext): Promise<void> {
  const { request, response, services } = context;
  const key = keyOf(context);
  const record = await ownedJob(context);
  const voiceMessage = parseRequest(VoiceMessageRequest, await readJson(request, response));
  demandInstance(key, voiceMessage);
  const faults = voiceFaults(services.settings, voiceMessage, '');
  if (faults.length > 0) throw faultsError(faults);
  demandFile(record);
  const { jobId } = record;
  demandRun(record, voiceMessage);
  await answerOnce(context, `${jobId} ${JSON.stringify(voiceMessage)}`, async ({ seed, keep }) => {
    const before = await readVoiceState(services.redis, record);
    const stopped =
      before?.parts?.findIndex(({ status }) => status === 'failed' || status === 'unknown') ?? 0;
    const earlier = record.voiceSendId;
    const isUndelivered = before?.parts?.[stopped]?.messageStatus === 'ERROR';
    // The notes before it are sent. If the network dropped one, later notes may be sent as well.
    if ((stopped > 0 || isUndelivered) && earlier !== null) {
      // From here the decision stands, whatever replicas say later.
      await services.jobs.replicated('voice', [notePartId(earlier, stopped)]);
      if (await services.followUps.goOnWithVoice(earlier, stopped, voiceMessage, isUndelivered)) {
        const state = readVoiceState(services.redis, record);
        return accepted(jobId, await state.catch(() => before));
      }
    }
    const sendId = `${jobId}-voice-${seed ?? randomBytes(8).toString('hex')}`;
    const sending = { tenant: key.id, jobId, sendId, request: voiceMessage };
    await services.followUps.askVoice(sending);
    await services.jobs.replicated('voice', [sendId]);
    const state = await readVoiceState(services.redis, { ...record, voiceSendId: sendId });
    const answer = accepted(jobId, state);
    await services.followUps.confirmVoice(sending, keep(answer));
    return answer;
  });
}

function accepted(jobId: string, voiceMessage: VoiceMessageState | undefined): Answer {
  return { httpStatus: 202, data: { jobId, voiceMessage } };
}

/** Notes are cut from the source, which is gone. */
function demandRun({ result, payload }: JobRecord, { split, trimSilence }: VoiceMessageRequest): void {
  const made = payload.options.voiceMessage;
  const missing =
    split && made?.split !== true && result?.voice?.fitsVoiceBubble !== true ? 'split' : undefined;
  const field = missing ?? (trimSilence && made?.trimSilence !== true ? 'trimSilence' : undefined);
  if (field !== undefined) {
    throw new ServiceError(
      'INVALID_REQUEST',
      `${field}: must be set with the job, in options.voiceMessage.${field}`,
    );
  }
}

function demandFile(record: JobRecord): void {
  if (record.status === 'failed') {
    throw new ServiceError('INVALID_REQUEST', 'the job failed, so there is nothing to send');
  }
  if (record.result === null) {
    throw new ServiceError('JOB_NOT_COMPLETED', 'the job has not finished yet', { retryAfterSeconds: 2 });
  }
  if (record.result.outputFile === null) {
    throw new ServiceError('INVALID_REQUEST', 'this job has no audio to send');
  }
  if (isExpired(record)) {
    throw new ServiceError('FILE_EXPIRED', 'the file is no longer available');
  }
}
