/** How far the voice message of a job is, read from the record of the job that sends it. */

import { MessageStatus, messageStatuses, type VoiceMessageState } from '../contract/job.ts';
import type { Redis } from '../redis/connection.ts';
import { ownKey } from '../redis/keys.ts';
import { RedisScript } from '../redis/script.ts';
import { clearSending, fetchVoice, noteSending } from './bullmq-internals.ts';
import type { JobRecord } from './job-record.ts';
import { VoiceOutcome } from './payloads.ts';

/** How far the voice message of the job is; undefined where none was asked for. */
export async function readVoiceState(
  redis: Redis,
  record: JobRecord,
): Promise<VoiceMessageState | undefined> {
  return record.voiceSendId === null ? undefined : readVoice(redis, record, record.voiceSendId);
}

async function readVoice(redis: Redis, record: JobRecord, sendId: string): Promise<VoiceMessageState> {
  const fitsVoiceBubble = record.result?.voice?.fitsVoiceBubble ?? null;
  if (record.status === 'failed') {
    const error = { code: 'JOB_FAILED', message: 'the job itself failed' };
    return { ...NOTHING_SENT, status: 'failed', fitsVoiceBubble, error };
  }
  const { attempts, hasEnded, result, isSending } = await fetchVoice(redis, sendId);
  if (result !== undefined) {
    const outcome = VoiceOutcome.parse(JSON.parse(result));
    const later = outcome.key && (await readMessageStatus(redis, outcome.key.id));
    return voiceState(
      { ...outcome, messageStatus: later ?? outcome.messageStatus },
      attempts,
      fitsVoiceBubble,
    );
  }
  if (hasEnded) {
    const error = { code: 'INTERNAL_ERROR', message: 'the message could not be handed over' };
    return { ...NOTHING_SENT, status: 'failed', attempts, fitsVoiceBubble, error };
  }
  return { ...NOTHING_SENT, status: isSending ? 'sending' : 'pending', attempts, fitsVoiceBubble };
}

const NOTHING_SENT = { attempts: 0, key: null, messageStatus: null, error: null };

/** @param attempts tries that have ended */
export function voiceState(
  outcome: VoiceOutcome,
  attempts: number,
  fitsVoiceBubble: boolean | null,
): VoiceMessageState {
  return { ...outcome, attempts, fitsVoiceBubble };
}

/**
 * Notes that a request to the gateway is about to leave. Answers whether one was under way already: then an earlier
 * try was cut off, and nobody knows whether its message was sent.
 */
export async function beginSending(redis: Redis, sendId: string): Promise<{ wasSending: boolean }> {
  return { wasSending: await noteSending(redis, sendId) };
}

/** Notes that the gateway did not take the message, so that another try is no second message. */
export async function endSending(redis: Redis, sendId: string): Promise<void> {
  await clearSending(redis, sendId);
}

const raise = new RedisScript(`
local order = cjson.decode(ARGV[3])
local function rank(word)
  for index, name in ipairs(order) do if name == word then return index end end
  return 0
end
local known = redis.call('GET', KEYS[1])
if known and rank(known) >= rank(ARGV[1]) then return known end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return ARGV[1]
`);

function messageStatusKey(messageId: string): string {
  return ownKey('message-status', messageId);
}

/** Notes how far a message has come. Receipts overtake one another, so the word only moves forward. */
export async function raiseMessageStatus(
  redis: Redis,
  messageId: string,
  status: MessageStatus,
  keepSeconds: number,
): Promise<void> {
  const order = JSON.stringify(messageStatuses);
  await raise.run(redis, [messageStatusKey(messageId)], [status, Math.ceil(keepSeconds), order]);
}

async function readMessageStatus(redis: Redis, messageId: string): Promise<MessageStatus | undefined> {
  return MessageStatus.optional().parse((await redis.get(messageStatusKey(messageId))) ?? undefined);
}
