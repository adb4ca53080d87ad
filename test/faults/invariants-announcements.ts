/** Each event is told under one id and heard or given up, and each voice message is sent once at most. */
import type { Json } from 'soundpost-testing/client';
import { until } from 'soundpost-testing/until';
import type { AcceptedJob, Stand } from './stand.ts';

export async function announcementFaults(stand: Stand): Promise<string[]> {
  const faults = [...(await voiceFaults(stand)), ...callFaults(stand)];
  for (const job of stand.accepted) {
    const found = await webhookFaults(stand, job);
    faults.push(...found.map((sentence) => `${job.jobId}: ${sentence}`));
  }
  return faults;
}

/** What every call of a webhook must be, whichever job it is about. */
function callFaults({ hooks, accepted }: Stand): string[] {
  const known = new Set(accepted.map(({ jobId }) => jobId));
  const faults: string[] = [];
  const first = new Map<string, { about: string; text: string }>();
  for (const { id, json, text, signatureFault } of hooks.calls) {
    const about = `${json.event} of ${json.jobId}`;
    if (signatureFault !== undefined) faults.push(`${about}: its signature does not hold: ${signatureFault}`);
    if (!known.has(json.jobId)) faults.push(`${about}: nobody knows of this job`);
    const earlier = first.get(id);
    if (earlier === undefined) first.set(id, { about, text });
    else if (earlier.about !== about)
      faults.push(`the webhook-id ${id} is that of ${earlier.about} and of ${about}`);
    else if (earlier.text !== text)
      faults.push(`${about}: two calls under one webhook-id say different things`);
  }
  const byEvent = Map.groupBy(first, ([, { about }]) => about);
  for (const [about, ids] of byEvent) {
    if (ids.length > 1)
      faults.push(`${about}: was told under ${ids.length} ids: ${ids.map(([id]) => id).join(', ')}`);
  }
  return faults;
}

/** Longer than the schedule of a stand. */
const LONGEST_SCHEDULE_MS = 40_000;

async function webhookFaults(stand: Stand, { jobId, submission }: AcceptedJob): Promise<string[]> {
  const job = stand.observer.of(jobId).last;
  if (job?.options?.webhook === undefined || job.options.webhook === null) return [];
  const client = stand.clientOf(submission.key ?? stand.home.key);
  let deliveries: Json[] = [];
  // A busy API may say so, and the job tells of its own webhook only: that of its voice message may still be on its schedule.
  const areMade = async (): Promise<boolean> => {
    const { status, body } = await client.call('GET', `/v1/jobs/${jobId}/deliveries`);
    // What else follows has its own invariants.
    deliveries = (body.data?.deliveries ?? []).filter(({ kind }: Json) => kind === 'webhook');
    return status !== 503 && !deliveries.some((delivery) => delivery.status === 'pending');
  };
  await until(`the deliveries of ${jobId}`, areMade, LONGEST_SCHEDULE_MS).catch(() => undefined);
  const events = [`job.${job.status}`];
  if (job.voiceMessage !== undefined && job.status === 'completed') events.push('voice.updated');
  const told = deliveries.map(({ event }) => event);
  const faults: string[] = [];
  if (events.toSorted().join() !== told.toSorted().join()) {
    faults.push(`deliveries are of [${told}], and not of [${events}]`);
  }
  for (const { event, status, attempts } of deliveries) {
    const heard = stand.hooks.calls.filter(
      (call) => call.json.jobId === jobId && call.json.event === event && call.status !== null,
    );
    const taken = heard.some((call) => (call.status ?? 0) >= 200 && (call.status ?? 0) < 300);
    if (status === 'delivered' && !taken) faults.push(`${event} is called delivered, but nobody took it`);
    if (status === 'pending') faults.push(`${event} is neither delivered nor given up`);
    if (status === 'failed' && attempts.length === 0) faults.push(`${event} was given up without a try`);
  }
  return faults;
}

/** The chat network is what counts: what lies in a chat was sent, whoever believes what. */
async function voiceFaults(stand: Stand): Promise<string[]> {
  const inChats = await messagesInChats(stand);
  const faults: string[] = [];
  const wanted = stand.accepted.filter(
    ({ jobId }) => stand.observer.of(jobId).last?.voiceMessage !== undefined,
  );
  const explained = new Set<string>();
  let inDoubt = 0;
  for (const { jobId } of wanted) {
    const { voiceMessage } = stand.observer.of(jobId).last;
    // What the gateway answered to calls of this job: also where the answer never came to a worker.
    const answered = stand.gatewayCalls.calls
      .filter(({ idempotencyKey }) => idempotencyKey?.startsWith(`${jobId}-voice`))
      .map(({ messageId }) => messageId);
    const ids = new Set([...answered, voiceMessage.key?.id].filter((id) => id !== undefined));
    const sent = [...ids].filter((id) => inChats.has(id));
    for (const id of sent) explained.add(id);
    if (sent.length > 1) faults.push(`${jobId}: its voice message was sent ${sent.length} times`);
    if (voiceMessage.status === 'sent' && !inChats.has(voiceMessage.key?.id)) {
      faults.push(`${jobId}: its voice message is called sent, but lies in no chat`);
    }
    if (voiceMessage.status === 'failed' && sent.length > 0) {
      faults.push(`${jobId}: its voice message is called failed, but lies in a chat`);
    }
    if (voiceMessage.status === 'unknown' && sent.length === 0) inDoubt += 1;
  }
  const strange = [...inChats].filter((id) => !explained.has(id));
  if (strange.length > inDoubt) {
    faults.push(`${strange.length} messages lie in chats that no job tells of; ${inDoubt} jobs are in doubt`);
  }
  return faults;
}

/** Ids of everything in the chats of the loopback network: what the inbox page pages through. */
async function messagesInChats(stand: Stand): Promise<Set<string>> {
  const redis = stand.redis.connect();
  try {
    const chats = await redis.keys('{soundpost}:gateway:chat:*');
    const ids = await Promise.all(chats.map((chat) => redis.zrange(chat, '0', '-1')));
    return new Set(ids.flat());
  } finally {
    redis.disconnect();
  }
}
