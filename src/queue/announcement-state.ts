/** How far the announcements of a job are, read from the records of the jobs that make them. */
import { z } from 'zod';
import {
  MessageStatus,
  messageStatuses,
  type VoiceMessageState,
  type WebhookState,
} from '../contract/job.ts';
import type { JobRecord } from './job-record.ts';
import { jobKey, ownKey, voiceId, webhookId } from './names.ts';
import { VoiceOutcome } from './payloads.ts';
import type { Redis } from './redis.ts';
import { RedisScript } from './script.ts';

/** Field in the record of a voice message, set while a request to the gateway is under way. */
const SENDING = 'spSending';

const AnnouncementHash = z.object({
  atm: z.coerce.number().int().default(0),
  finishedOn: z.string().optional(),
  returnvalue: z.string().optional(),
  failedReason: z.string().optional(),
  [SENDING]: z.string().optional(),
});

export interface AnnouncementStates {
  readonly webhook: WebhookState | undefined;
  readonly voiceMessage: VoiceMessageState | undefined;
}

/** The states of what the job asked for; one round trip where it asked for anything. */
export async function readAnnouncements(redis: Redis, record: JobRecord): Promise<AnnouncementStates> {
  const { webhook, voiceMessage } = record.payload.options;
  const [webhookState, voiceState] = await Promise.all([
    webhook === undefined ? undefined : readWebhook(redis, record.jobId),
    voiceMessage === undefined ? undefined : readVoice(redis, record),
  ]);
  return { webhook: webhookState, voiceMessage: voiceState };
}

async function readWebhook(redis: Redis, jobId: string): Promise<WebhookState> {
  const hash = AnnouncementHash.parse(await redis.hgetall(jobKey('webhook', webhookId(jobId))));
  const delivered = hash.returnvalue !== undefined;
  return {
    status: delivered ? 'delivered' : hash.finishedOn === undefined ? 'pending' : 'failed',
    // BullMQ counts a try when it has ended.
    attempts: hash.atm,
    lastError: delivered ? null : (hash.failedReason ?? null),
  };
}

async function readVoice(redis: Redis, record: JobRecord): Promise<VoiceMessageState> {
  const state = {
    attempts: 0,
    key: null,
    messageStatus: null,
    fitsVoiceBubble: record.result?.voice?.fitsVoiceBubble ?? null,
    error: null,
  };
  if (record.status === 'failed') {
    return { ...state, status: 'failed', error: { code: 'JOB_FAILED', message: 'the job itself failed' } };
  }
  const hash = AnnouncementHash.parse(await redis.hgetall(jobKey('voice', voiceId(record.jobId))));
  if (hash.returnvalue !== undefined) {
    const outcome = VoiceOutcome.parse(JSON.parse(hash.returnvalue));
    const later = outcome.key && (await readMessageStatus(redis, outcome.key.id));
    return { ...state, ...outcome, messageStatus: later ?? outcome.messageStatus, attempts: hash.atm };
  }
  if (hash.finishedOn !== undefined) {
    const message = 'the message could not be handed over';
    return { ...state, status: 'failed', attempts: hash.atm, error: { code: 'INTERNAL_ERROR', message } };
  }
  return { ...state, status: hash[SENDING] === undefined ? 'pending' : 'sending', attempts: hash.atm };
}

/**
 * Notes that a request to the gateway is about to leave. Answers whether one was under way already: then an earlier
 * try was cut off, and nobody knows whether its message was sent.
 */
export async function beginSending(redis: Redis, jobId: string): Promise<{ wasSending: boolean }> {
  const added = await redis.hset(jobKey('voice', voiceId(jobId)), SENDING, '1');
  return { wasSending: added === 0 };
}

/** Notes that the gateway did not take the message, so that another try is no second message. */
export async function endSending(redis: Redis, jobId: string): Promise<void> {
  await redis.hdel(jobKey('voice', voiceId(jobId)), SENDING);
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
