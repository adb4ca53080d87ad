/** `deliveries list | show | replay | resend`: follow-ups of a key's jobs, at a service. */
import type { SoundpostClient } from 'soundpost-client/client';
import type { Delivery } from 'soundpost-contract/answers';
import type { Job } from 'soundpost-contract/job';
import { UsageError } from './ending.ts';
import { interruptible } from './interrupt.ts';
import type { OnServer } from './jobs.ts';
import { anyServer } from './server.ts';
import { fields, table } from './terminal-text.ts';

interface DeliveryListChoices extends OnServer {
  readonly status?: Delivery['status'];
  /** A number as text: how many jobs to search if none is given. */
  readonly limit: string;
}

type OfJob = Delivery & { readonly jobId: string };

/** An id starts with its job's. */
const JOB_OF_DELIVERY = /^job_[0-9a-f]{16}/;
/** Of a destination: then comes the output's name. Its webhook's id ends in `-webhook`. */
const OUTPUT_OF_DELIVERY = /^job_[0-9a-f]{16}-destination-(?!.*-webhook$)(.+)$/;

/** @param jobId undefined: the newest jobs */
export async function listDeliveries(
  jobId: string | undefined,
  choices: DeliveryListChoices,
): Promise<string> {
  const { client } = anyServer(choices);
  const all = await interruptible(async (signal) => {
    const jobIds = jobId === undefined ? await recentJobs(client, choices.limit, signal) : [jobId];
    const lists: OfJob[] = [];
    for (const id of jobIds) lists.push(...(await deliveriesOf(client, id, signal)));
    return lists;
  });
  const deliveries = all.filter(({ status }) => choices.status === undefined || status === choices.status);
  if (choices.json) return JSON.stringify({ deliveries });
  const rows = deliveries.map((delivery) => [
    delivery.deliveryId,
    delivery.kind,
    eventOf(delivery) ?? '',
    delivery.status,
    String(delivery.attempts.length),
    lastAnswer(delivery.attempts),
  ]);
  return table(['DELIVERY', 'KIND', 'EVENT', 'STATE', 'ATTEMPTS', 'LAST ANSWER'], rows);
}

async function recentJobs(client: SoundpostClient, limit: string, signal: AbortSignal): Promise<string[]> {
  const wanted = Number(limit);
  if (!Number.isInteger(wanted) || wanted < 1 || wanted > 100) {
    throw new UsageError(`--limit: "${limit}" is not a number of jobs; use 1 to 100`);
  }
  const { jobs } = await client.jobs({ limit: wanted, signal });
  return jobs.filter(hasDeliveries).map((job) => job.jobId);
}

function hasDeliveries({ webhook, voiceMessage, transcripts, destination, outputFiles }: Job): boolean {
  const follow = [webhook, voiceMessage, transcripts, destination];
  return [...follow, ...outputFiles.map((file) => file.destination)].some((one) => one !== undefined);
}

const eventOf = (delivery: Delivery): string | undefined =>
  delivery.kind === 'webhook' ? delivery.event : undefined;

async function deliveriesOf(client: SoundpostClient, jobId: string, signal?: AbortSignal): Promise<OfJob[]> {
  const { deliveries } = await client.deliveries(jobId, { signal });
  return deliveries.map((delivery) => ({ jobId, ...delivery }));
}

export async function showDelivery(deliveryId: string, choices: OnServer): Promise<string> {
  const { client } = anyServer(choices);
  return described(find(await deliveriesOf(client, jobOf(deliveryId)), deliveryId), choices);
}

interface ReplayChoices extends OnServer {
  /** Of a destination: its new address. */
  readonly url?: string;
}

export async function replayDelivery(deliveryId: string, choices: ReplayChoices): Promise<string> {
  const { client } = anyServer(choices);
  const jobId = jobOf(deliveryId);
  const output = OUTPUT_OF_DELIVERY.exec(deliveryId)?.[1];
  const { url } = choices;
  if (output === undefined && url !== undefined) {
    throw new UsageError(`--url is for a destination, such as ${jobId}-destination-audio`);
  }
  const { deliveries } = await (output === undefined
    ? client.replayDelivery(jobId, deliveryId)
    : client.replayDestination(jobId, output, url === undefined ? {} : { url }));
  const replayed = find(
    deliveries.map((delivery) => ({ jobId, ...delivery })),
    deliveryId,
  );
  return choices.json ? JSON.stringify(replayed) : `resending ${deliveryId}`;
}

interface ResendChoices extends OnServer {
  /** A time in a format of `Date`. */
  readonly since: string;
}

export async function resendDeliveries(choices: ResendChoices): Promise<string> {
  const since = new Date(choices.since);
  if (Number.isNaN(since.getTime())) {
    throw new UsageError(`--since: "${choices.since}" is not a time; write it as 2026-11-23T14:00Z`);
  }
  const { client } = anyServer(choices);
  const answer = await client.resendDeliveries(since.toISOString());
  if (choices.json) return JSON.stringify(answer);
  return answer.resent === 1 ? 'resending 1 delivery' : `resending ${answer.resent} deliveries`;
}

function jobOf(deliveryId: string): string {
  const [jobId] = JOB_OF_DELIVERY.exec(deliveryId) ?? [];
  if (jobId === undefined) {
    throw new UsageError(
      `"${deliveryId}" is not a delivery id, such as job_0123456789abcdef-webhook; list them with "soundpost deliveries list"`,
    );
  }
  return jobId;
}

function find(deliveries: readonly OfJob[], deliveryId: string): OfJob {
  const found = deliveries.find((delivery) => delivery.deliveryId === deliveryId);
  if (found === undefined) {
    throw new UsageError(
      `no such delivery: ${deliveryId}; list them with "soundpost deliveries list ${jobOf(deliveryId)}"`,
    );
  }
  return found;
}

function described(delivery: OfJob, { json }: OnServer): string {
  if (json) return JSON.stringify(delivery);
  const { attempts } = delivery;
  const head = fields([
    ['delivery', delivery.deliveryId],
    ['job', delivery.jobId],
    ['kind', delivery.kind],
    ['event', eventOf(delivery)],
    ['state', delivery.status],
    ['next attempt', delivery.nextAttemptAt],
  ]);
  const rows = attempts.map((attempt) => [attempt.at, answerOf(attempt), `${attempt.latencyMs} ms`]);
  return attempts.length === 0 ? head : `${head}\n\n${table(['ATTEMPTED AT', 'ANSWER', 'DURATION'], rows)}`;
}

function lastAnswer(attempts: Delivery['attempts']): string {
  const last = attempts.at(-1);
  return last === undefined ? '' : answerOf(last);
}

function answerOf({ httpStatus, error }: Delivery['attempts'][number]): string {
  return [httpStatus, error].filter((part) => part !== null).join(' ');
}
