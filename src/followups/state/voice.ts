/** State of a job's voice message, from the record of the job that sends it. */

import { MessageKey, MessageStatus, messageStatuses, type VoiceMessageState } from 'soundpost-contract/job';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { ofItsType, readText, unlessUnreadable, withEdition } from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { fetchFollowUp, noteSending } from '../../jobs/bullmq-internals.ts';
import type { JobRecord } from '../../jobs/job-record.ts';
import { notePartId } from '../../jobs/names.ts';
import { type VoiceNotePart, VoiceOutcome } from '../../jobs/payloads.ts';

/** State of the job's voice message; undefined if none was requested. */
export async function readVoiceState(
  redis: Redis,
  record: JobRecord,
): Promise<VoiceMessageState | undefined> {
  return record.voiceSendId === null ? undefined : readVoice(redis, record, record.voiceSendId);
}

/** The end of the current attempt, which its own record may not show yet. */
interface JustEnded {
  readonly part: number;
  readonly outcome: VoiceOutcome;
  /** Completed attempts. */
  readonly attempts: number;
}

/** @param ended outcome of the part that the caller has just attempted */
export async function readVoice(
  redis: Redis,
  record: JobRecord,
  sendId: string,
  ended?: JustEnded,
): Promise<VoiceMessageState> {
  const voice = record.result?.voice;
  const fitsVoiceBubble = voice?.fitsVoiceBubble ?? null;
  if (record.status === 'failed') {
    const error = { code: 'JOB_FAILED', message: 'the job itself failed' };
    return { ...NOTHING_SENT, status: 'failed', fitsVoiceBubble, error };
  }
  const read = (part: number): Promise<PartState | undefined> =>
    ended?.part === part
      ? endedPart(redis, ended.outcome, ended.attempts)
      : readPart(redis, notePartId(sendId, part));
  const notes = voice?.parts;
  return notes === undefined
    ? { ...((await read(0)) ?? PENDING), fitsVoiceBubble }
    : { ...runState(await Promise.all(notes.map((_, part) => read(part))), notes), fitsVoiceBubble };
}

/** Whether nothing more of it is sent. */
export async function hasVoiceEnded(redis: Redis, record: JobRecord): Promise<boolean> {
  const voice = await readVoiceState(redis, record);
  // A run that has failed can still have a note in the queue.
  const all = voice === undefined ? [] : [voice, ...(voice.parts ?? [])];
  return !all.some(({ status }) => status === 'pending' || status === 'sending');
}

type PartState = Omit<VoiceMessageState, 'fitsVoiceBubble' | 'parts'>;

const NOTHING_SENT = { attempts: 0, key: null, messageStatus: null, error: null };
const PENDING: PartState = { ...NOTHING_SENT, status: 'pending' };

/** Undefined if it is not queued yet. */
async function readPart(redis: Redis, partId: string): Promise<PartState | undefined> {
  const found = await fetchFollowUp(redis, 'voice', partId);
  if (!found.isThere) return undefined;
  const { attempts, hasEnded, result, failure, isSending } = found;
  if (result !== undefined) {
    const outcome = await unlessUnreadable(
      () => readText(VoiceOutcome, result),
      (why): VoiceOutcome => ({ ...NOTHING_SENT, status: 'unknown', error: unreadable(why.message) }),
    );
    return endedPart(redis, outcome, attempts);
  }
  if (hasEnded) {
    const error = { code: 'INTERNAL_ERROR', message: 'the message could not be handed over' };
    return { ...NOTHING_SENT, status: 'failed', attempts, error };
  }
  // A note that is sent again keeps what it once failed with.
  const error = attempts === 0 || failure === undefined ? null : readReason(failure);
  return { ...NOTHING_SENT, status: isSending ? 'sending' : 'pending', attempts, error };
}

/** With what has become of its message since. */
async function endedPart(redis: Redis, outcome: VoiceOutcome, attempts: number): Promise<PartState> {
  const later = outcome.key === null ? {} : await readMessage(redis, outcome.key.id);
  return { ...outcome, ...later, attempts };
}

/** Why an attempt failed that another one follows, as it is logged. */
export const reasonOf = (code: string, message: string): string => `${code}: ${message}`;

function readReason(reason: string): NonNullable<PartState['error']> {
  const [, code = 'INTERNAL_ERROR', message = reason] = /^(\w+): (.+)$/s.exec(reason) ?? [];
  return { code, message };
}

const unreadable = (why: string) => ({
  code: 'INTERNAL_ERROR',
  message: `its result cannot be read: ${why}`,
});

/** A run's state, from the states of its notes. */
function runState(
  found: readonly (PartState | undefined)[],
  notes: readonly VoiceNotePart[],
): PartState & Pick<VoiceMessageState, 'parts'> {
  const stopped = found.findIndex((state) => state?.status === 'failed' || state?.status === 'unknown');
  // After a note that the network gave up, those that are queued are still sent.
  const states = found.map((state) => state ?? (stopped >= 0 ? notTried(stopped) : PENDING));
  const parts = states.map(({ attempts: _, ...state }, part) => {
    const { seconds = 0, fitsVoiceBubble = false } = notes[part] ?? {};
    return { ...state, seconds, fitsVoiceBubble };
  });
  const isAny = (status: PartState['status']): boolean => states.some((state) => state.status === status);
  const isAllSent = states.every(({ status }) => status === 'sent');
  const under = isAny('sent') || isAny('sending') ? 'sending' : 'pending';
  const reached = states.map(({ messageStatus }) => messageStatuses.indexOf(messageStatus ?? 'ERROR'));
  return {
    status: states[stopped]?.status ?? (isAllSent ? 'sent' : under),
    attempts: states.reduce((sum, { attempts }) => sum + attempts, 0),
    key: states[0]?.key ?? null,
    messageStatus: isAllSent ? (messageStatuses[Math.min(...reached)] ?? null) : null,
    error: states[stopped]?.error ?? null,
    parts,
  };
}

function notTried(stopped: number): PartState {
  const message = `note ${stopped + 1} of the run was not sent, so this one was not tried`;
  return { ...NOTHING_SENT, status: 'failed', error: { code: 'EARLIER_NOTE_FAILED', message } };
}

/**
 * Records that a request to the gateway is about to start, and answers whether one was already:
 * then an earlier attempt was cut off, and its message may have been sent.
 * @throws if Redis has lost the voice message: the job's completion or the note before adds it
 *   again, except for one that a caller resent
 */
export async function beginSending(redis: Redis, sendId: string): Promise<{ wasSending: boolean }> {
  const noted = await noteSending(redis, sendId);
  if (noted === 'absent') throw new Error('Redis has lost this voice message');
  return { wasSending: noted === 'known' };
}

const raise = loadScript(new URL('./lua/message-status-raise.lua', import.meta.url));

/** ERROR counts only until a device has the message, as in the gateway's own log. */
const RECEIPT_ORDER = ['PENDING', 'SERVER_ACK', 'ERROR', 'DELIVERY_ACK', 'READ', 'PLAYED'];
const NOT_DELIVERED = { code: 'network_refused', message: 'the network did not deliver the message' };

const statusKey = (messageId: string): string => ownKey('message-status', messageId);
const noteKey = (messageId: string): string => ownKey('message-note', messageId);

/** The part of a voice message that a message is, so that its later failure can be announced. */
const MessageOrigin = z.object({
  jobId: z.string(),
  sendId: z.string(),
  part: z.int(),
  round: z.int(),
  key: MessageKey,
  /** Completed attempts, when it was sent. */
  attempts: z.int(),
});
type MessageOrigin = z.infer<typeof MessageOrigin>;

const MessageError = z.object({ code: z.string(), message: z.string() });

interface MessageReport {
  readonly id: string;
  readonly status: MessageStatus;
  /** Of an ERROR, if the network says why. */
  readonly error?: z.infer<typeof MessageError> | undefined;
  /** Known to the worker that sent it. */
  readonly origin?: MessageOrigin;
}

/**
 * Records a message's status, forward only: receipts can overtake one another, and the worker's own
 * note of what it sent. Of that note and an ERROR, whichever comes second learns of the other.
 */
export async function raiseMessageStatus(
  redis: Redis,
  { id, status, error, origin }: MessageReport,
  keepSeconds: number,
): Promise<{
  readonly status: MessageStatus;
  readonly origin: MessageOrigin | undefined;
  readonly error: z.infer<typeof MessageError>;
}> {
  const text = (value: object | undefined): string =>
    value === undefined ? '' : JSON.stringify(withEdition(value));
  const answer = await raise.run(
    redis,
    [statusKey(id), noteKey(id)],
    [status, Math.ceil(keepSeconds), JSON.stringify(RECEIPT_ORDER), text(origin), text(error)],
  );
  const [now, of, why] = z.tuple([z.string(), z.string(), z.string()]).parse(answer);
  return {
    status: MessageStatus.catch(status).parse(now),
    origin: of === '' ? undefined : readText(MessageOrigin, of),
    error: why === '' ? NOT_DELIVERED : readText(MessageError, why),
  };
}

async function readMessage(
  redis: Redis,
  messageId: string,
): Promise<Partial<Pick<PartState, 'status' | 'messageStatus' | 'error'>>> {
  const text = await unlessUnreadable(
    () => ofItsType(redis.get(statusKey(messageId))),
    () => null,
  );
  const { data: messageStatus } = MessageStatus.safeParse(text);
  if (messageStatus === undefined) return {};
  if (messageStatus !== 'ERROR') return { messageStatus };
  const error = await unlessUnreadable(
    async () => {
      const why = await ofItsType(redis.hget(noteKey(messageId), 'error'));
      return why === null ? NOT_DELIVERED : readText(MessageError, why);
    },
    () => NOT_DELIVERED,
  );
  return { status: 'failed', messageStatus, error };
}
