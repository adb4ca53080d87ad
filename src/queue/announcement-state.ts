/** How far the announcements of a job are, read from the records of the jobs that make them. */
import { z } from 'zod';
import {
  MessageStatus,
  messageStatuses,
  type VoiceMessageState,
  type WebhookState,
} from '../contract/job.ts';
import { attemptsKey, currentDeliveryJob } from './delivery-index.ts';
import type { JobRecord } from './job-record.ts';
import { jobKey, ownKey, webhookId } from './names.ts';
import { VoiceOutcome } from './payloads.ts';
import type { Redis } from './redis.ts';
import { RedisScript } from './script.ts';

/** Field in the record of a voice message, set while a request to the gateway is under way. */
const SENDING = 'spSending';

/** The hash of an announcement; what BullMQ keeps there besides is not ours to read. */
export const AnnouncementHash = z.object({
  data: z.string().optional(),
  /** Tries that have ended. */
  atm: z.coerce.number().int().default(0),
  finishedOn: z.coerce.number().optional(),
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
  const [webhook, voiceMessage] = await Promise.all([
    record.payload.options.webhook === undefined ? undefined : readWebhook(redis, record.jobId),
    record.voiceSendId === null ? undefined : readVoice(redis, record, record.voiceSendId),
  ]);
  return { webhook, voiceMessage };
}

async function readWebhook(redis: Redis, jobId: string): Promise<WebhookState> {
  const deliveryId = webhookId(jobId);
  const current = await currentDeliveryJob(redis, jobId, deliveryId);
  const hash = AnnouncementHash.parse(await redis.hgetall(jobKey('webhook', current)));
  const status = deliveryStatus(hash);
  const lastError = hash.failedReason ?? null;
  return {
    status,
    attempts: await redis.llen(attemptsKey(deliveryId)),
    lastError:
      status === 'delivered' ? null : status === 'failed' ? `WEBHOOK_FAILED: ${lastError}` : lastError,
  };
}

export function deliveryStatus(hash: z.infer<typeof AnnouncementHash>): WebhookState['status'] {
  // A failure that a later try made good stays in the hash, so success is looked for first.
  return hash.returnvalue !== undefined ? 'delivered' : hash.finishedOn === undefined ? 'pending' : 'failed';
}

async function readVoice(redis: Redis, record: JobRecord, sendId: string): Promise<VoiceMessageState> {
  const fitsVoiceBubble = record.result?.voice?.fitsVoiceBubble ?? null;
  if (record.status === 'failed') {
    const error = { code: 'JOB_FAILED', message: 'the job itself failed' };
    return { ...NOTHING_SENT, status: 'failed', fitsVoiceBubble, error };
  }
  const hash = AnnouncementHash.parse(await redis.hgetall(jobKey('voice', sendId)));
  if (hash.returnvalue !== undefined) {
    const outcome = VoiceOutcome.parse(JSON.parse(hash.returnvalue));
    const later = outcome.key && (await readMessageStatus(redis, outcome.key.id));
    return voiceState(
      { ...outcome, messageStatus: later ?? outcome.messageStatus },
      hash.atm,
      fitsVoiceBubble,
    );
  }
  if (hash.finishedOn !== undefined) {
    const error = { code: 'INTERNAL_ERROR', message: 'the message could not be handed over' };
    return { ...NOTHING_SENT, status: 'failed', attempts: hash.atm, fitsVoiceBubble, error };
  }
  const status = hash[SENDING] === undefined ? 'pending' : 'sending';
  return { ...NOTHING_SENT, status, attempts: hash.atm, fitsVoiceBubble };
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
  const added = await redis.hset(jobKey('voice', sendId), SENDING, '1');
  return { wasSending: added === 0 };
}

/** Notes that the gateway did not take the message, so that another try is no second message. */
export async function endSending(redis: Redis, sendId: string): Promise<void> {
  await redis.hdel(jobKey('voice', sendId), SENDING);
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
