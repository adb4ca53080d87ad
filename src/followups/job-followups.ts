/**
 * A job's follow-ups: added by workers, shown and replayed by the API. Each is a job of its own
 * whose id derives from the job's, so adding it twice changes nothing.
 */
import { randomUUID } from 'node:crypto';
import type { Telemetry } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import type { Delivery, EndpointDeliveries, WebhookDelivery } from 'soundpost-contract/answers';
import type { WebhookState } from 'soundpost-contract/job';
import type { VoiceMessageRequest } from 'soundpost-contract/job-request';
import type { KeptAnswer } from 'soundpost-kit/http/idempotency';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { ofItsType, readable, unlessUnreadable } from 'soundpost-kit/redis/record';
import { decide } from 'soundpost-kit/redis/until-taken';
import { z } from 'zod';
import { clearSending, confirmVoice, countPending, notePutReplay } from '../jobs/bullmq-internals.ts';
import { type DestinationReplay, destinationOf } from '../jobs/destinations.ts';
import type { JobRecord } from '../jobs/job-record.ts';
import { CHANGE_CHANNEL, destinationId, notePartId, transcriptId, webhookId } from '../jobs/names.ts';
import { UNCONFIRMED_MS } from '../jobs/open-queue.ts';
import {
  type DestinationPayload,
  readPayload,
  type StoredTranscript,
  TranscriptPayload,
  VoicePayload,
  WebhookPayload,
} from '../jobs/payloads.ts';
import { endpointOf, MOST_LISTED, pendingKey, readEndpoints, sentKey } from './endpoints.ts';
import { VOICE_SCHEDULE_SECONDS } from './kind.ts';
import { FollowUpQueue } from './queue.ts';
import { readPut } from './state/destinations.ts';

interface JobFollowUpsOptions {
  /** The caller closes it. */
  readonly redis: Redis;
  /** Number of attempts for a webhook. */
  readonly webhookTries: number;
  /** How long the record of a job is kept, seconds. */
  readonly recordSeconds: number;
  readonly logger: Logger;
  readonly telemetry?: Telemetry | undefined;
}

/** If a job's record vanished sooner, its follow-ups could be added twice. */
const KEEP_LONGER_SECONDS = 24 * 60 * 60;
/** Records that BullMQ removes at once. */
const REMOVE_LIMIT = 100;
/** The kind counts attempts since the last part or replay: BullMQ must not stop before. */
const COUNTED_BY_KIND = 1_000_000;

const kindOf = { voice: 'voice-message', transcript: 'transcript', destination: 'destination' } as const;
type OtherQueue = keyof typeof kindOf;

/** Set: the ids of the job's webhooks, and `<queue> <id>` of its other follow-ups. */
const indexKey = (jobId: string): string => ownKey('deliveries', jobId);

/** A webhook's content, without its owner and address. */
type Event = Omit<WebhookPayload, 'version' | 'tenant' | 'jobId' | 'url' | 'eventTimeMs'>;
type Sending = Omit<VoicePayload, 'version' | 'round' | 'isAsked'>;
type Asked = Omit<Sending, 'part'>;
/** Part of transcripts' and deliveries' payloads. */
const OfOutput = z.object({ name: TranscriptPayload.shape.name.optional() });

type Sent = z.infer<typeof EndpointDeliveries>['deliveries'][number];
interface DeliveriesPage {
  readonly status: Sent['status'] | undefined;
  readonly limit: number;
  readonly after: string | undefined;
}

export class JobFollowUps {
  readonly queues: Readonly<Record<'webhook' | OtherQueue, FollowUpQueue>>;
  readonly #redis: Redis;
  readonly #webhookTries: number;
  readonly #keepSeconds: number;

  constructor({ redis, webhookTries, recordSeconds, logger, telemetry }: JobFollowUpsOptions) {
    this.#redis = redis;
    this.#webhookTries = webhookTries;
    this.#keepSeconds = Math.ceil(recordSeconds + KEEP_LONGER_SECONDS);
    const ended = { age: this.#keepSeconds, limit: REMOVE_LIMIT };
    const keep = { delivered: ended, failed: ended };
    const open = (name: 'webhook' | OtherQueue): FollowUpQueue =>
      new FollowUpQueue({ name, redis, keep, logger, telemetry });
    this.queues = {
      webhook: open('webhook'),
      voice: open('voice'),
      transcript: open('transcript'),
      destination: open('destination'),
    };
  }

  async #index(jobId: string, member: string): Promise<void> {
    const key = indexKey(jobId);
    await this.#redis.multi().sadd(key, member).expire(key, this.#keepSeconds).exec();
  }

  /** Does nothing if the job has no webhook. @param eventTimeMs when it happened; default now */
  async addWebhook({ jobId, payload }: JobRecord, event: Event, eventTimeMs = redisNow()): Promise<void> {
    const { tenant, options } = payload;
    if (options.webhook === undefined) return;
    const about = { version: 1, tenant, jobId, url: options.webhook, eventTimeMs } as const;
    const data: WebhookPayload = { ...about, ...event };
    await this.#index(jobId, data.deliveryId);
    await this.queues.webhook.add(data.deliveryId, data.event, data, this.#webhookTries);
    const { endpoint } = endpointOf(data.url);
    const [sent, pending] = [sentKey(tenant, endpoint), pendingKey(tenant, endpoint)];
    await this.#redis
      .multi()
      .zadd(sent, 'NX', eventTimeMs, data.deliveryId)
      .zremrangebyrank(sent, 0, -MOST_LISTED - 1)
      .expire(sent, this.#keepSeconds)
      .sadd(pending, data.deliveryId)
      .expire(pending, this.#keepSeconds)
      .exec();
  }

  async #notePending({ tenant, url, deliveryId }: WebhookPayload): Promise<void> {
    const key = pendingKey(tenant, endpointOf(url).endpoint);
    await this.#redis.multi().sadd(key, deliveryId).expire(key, this.#keepSeconds).exec();
  }

  /** Call when a webhook has ended. */
  async forgetPending({ tenant, url, deliveryId }: WebhookPayload): Promise<void> {
    await this.#redis.srem(pendingKey(tenant, endpointOf(url).endpoint), deliveryId);
  }

  /**
   * A page of the endpoints that the key's webhooks were posted to, asked last first.
   * @param isAfter whether an endpoint comes behind the page before
   */
  async endpoints(
    tenant: string,
    limit: number,
    isAfter: (one: { readonly endpoint: string; readonly lastAt: number }) => boolean,
  ) {
    const known = (await readEndpoints(this.#redis, this.queues.webhook.name, tenant)).filter(isAfter);
    const page = known.slice(0, limit);
    const sets = page.map(({ endpoint }) => pendingKey(tenant, endpoint));
    const pending = sets.length > 0 ? await countPending(this.#redis, 'webhook', sets) : [];
    return {
      page: page.map((one, index) => ({ ...one, pending: pending[index] ?? 0 })),
      hasMore: known.length > limit,
    };
  }

  /**
   * A page of the deliveries to an endpoint, newest first; of the newest 1,000.
   * @param to a URL, whose query does not count
   * @param after the last delivery of the page before
   */
  async deliveriesTo(tenant: string, to: string, { status, limit, after }: DeliveriesPage) {
    const key = sentKey(tenant, endpointOf(to).endpoint);
    const ids = await unlessUnreadable(
      () => ofItsType(this.#redis.zrevrange(key, 0, -1)),
      (): string[] => [],
    );
    const page: Sent[] = [];
    const last = after === undefined ? -1 : ids.indexOf(after);
    // What comes after one that is listed no longer is not listed either.
    if (after !== undefined && last === -1) return { page, next: null };
    for (const id of ids.slice(last + 1)) {
      if (page.length === limit) return { page, next: page.at(-1)?.deliveryId ?? null };
      const found = await this.queues.webhook.look(id);
      if (found === undefined || (status !== undefined && found.progress.status !== status)) continue;
      for (const { jobId, event, eventTimeMs } of readable([found.stored.data], (data) =>
        readPayload(WebhookPayload, data),
      )) {
        page.push({ jobId, event, createdAt: new Date(eventTimeMs).toISOString(), ...found.progress });
      }
    }
    return { page, next: null };
  }

  /** Adds the webhook of a delivery that has ended. */
  async addDestinationWebhook(
    record: JobRecord,
    name: string,
    outcome: Pick<NonNullable<WebhookPayload['destination']>, 'status' | 'error'>,
  ): Promise<void> {
    const { replay } = await readPut(this.#redis, record.jobId, name);
    const destination = destinationOf(record.payload, name, replay);
    if (destination === undefined) return;
    const { status, error } = outcome;
    await this.addWebhook(record, {
      deliveryId: webhookId(`${destinationId(record.jobId, name)}${replay ? `-${replay.id}` : ''}`),
      event: 'destination.updated',
      ...{ name, destination: { ...destination, status, error } },
    });
  }

  async #add(queue: OtherQueue, verb: string, id: string, data: { jobId: string }, tries: number) {
    await this.#index(data.jobId, `${queue} ${id}`);
    await this.queues[queue].add(id, verb, data, tries);
  }

  /** Sends a job's result to a chat; for a run one note, whose sender adds the next. */
  async addVoice(sending: Sending): Promise<void> {
    const data: VoicePayload = { version: 1, round: 0, ...sending };
    const id = notePartId(data.sendId, data.part);
    await this.#add('voice', 'send', id, data, VOICE_SCHEDULE_SECONDS.length);
  }

  /**
   * Adds a message that a caller asks for. It is sent, and shown, once {@link confirmVoice} says
   * so.
   */
  async askVoice(sending: Asked): Promise<void> {
    const data: VoicePayload = { version: 1, round: 0, part: 0, isAsked: true, ...sending };
    const tries = VOICE_SCHEDULE_SECONDS.length;
    await this.queues.voice.add(notePartId(sending.sendId, 0), 'send', data, tries, UNCONFIRMED_MS);
  }

  /**
   * Decides that the message is sent.
   * @param kept the answer under the request's Idempotency-Key
   * @throws Redis' refusal: then it is never sent
   */
  async confirmVoice(sending: Asked, kept: KeptAnswer | undefined): Promise<void> {
    const { jobId, sendId } = sending;
    const [id, deliveries, keepSeconds] = [notePartId(sendId, 0), indexKey(jobId), this.#keepSeconds];
    const confirm = () => confirmVoice(this.#redis, { jobId, sendId, id, deliveries, keepSeconds, kept });
    await decide(confirm, () => this.askVoice(sending).then(confirm));
  }

  /**
   * Resumes a stopped run from the note that stopped it.
   * @param isUndelivered the gateway has sent that note, and the network gave it up: another
   *   message follows
   * @returns false if that went to another recipient or is unknown
   */
  async goOnWithVoice(
    sendId: string,
    part: number,
    { instance, number }: VoiceMessageRequest,
    isUndelivered: boolean,
  ): Promise<boolean> {
    const partId = notePartId(sendId, part);
    const stored = await this.queues.voice.find(partId);
    if (stored === undefined) return false;
    const { request, round, keyRound } = readPayload(VoicePayload, stored.data);
    if (request.instance !== instance || request.number !== number) return false;
    // A concurrent request has already resumed it.
    if (stored.status === 'pending') return true;
    await decide(async () => {
      // The caller accepts that the note may already have been sent.
      const mayBeSent = await clearSending(this.#redis, partId);
      const next = round + 1;
      // The gateway answers a known key as before.
      await this.queues.voice.replay(partId, {
        round: next,
        keyRound: isUndelivered || mayBeSent ? next : keyRound,
      });
    });
    return true;
  }

  async addTranscript(tenant: string, jobId: string, name: string): Promise<void> {
    const data: TranscriptPayload = { version: 1, tenant, jobId, name };
    await this.#add('transcript', 'transcribe', transcriptId(jobId, name), data, COUNTED_BY_KIND);
  }

  /**
   * Delivers an output's file, if it has a destination.
   * @param transcript that has just completed
   */
  async addPut({ jobId, payload }: JobRecord, name: string, transcript?: StoredTranscript): Promise<void> {
    const destination = destinationOf(payload, name);
    if (destination === undefined) return;
    const { origin } = new URL(destination.url);
    const about = { version: 1, tenant: payload.tenant, jobId, name, origin } as const;
    const data: DestinationPayload = transcript === undefined ? about : { ...about, transcript };
    await this.#add('destination', 'put', destinationId(jobId, name), data, COUNTED_BY_KIND);
  }

  /**
   * Delivers an output's file again, at once and with the whole schedule. One that is pending keeps
   * its attempts, unless it gets another address: that takes the place of the old one at once.
   * @param address undefined: where it went before
   * @param transcript the file, if it is one
   */
  async replayPut(
    record: JobRecord,
    name: string,
    address: DestinationReplay['address'],
    transcript?: StoredTranscript,
  ): Promise<void> {
    await this.addPut(record, name, transcript);
    const id = destinationId(record.jobId, name);
    const { status, replay } = await readPut(this.#redis, record.jobId, name);
    if (status !== 'pending' || address !== undefined) {
      const next: DestinationReplay = { id: randomUUID().slice(0, 8), address: address ?? replay?.address };
      await notePutReplay(this.#redis, id, JSON.stringify(next));
    }
    await this.queues.destination.replay(id);
    await this.#redis.publish(CHANGE_CHANNEL, record.jobId);
  }

  /** Continues a delivery that was asked for again in the moment in which it ended. */
  async continuePut(jobId: string, name: string): Promise<void> {
    const id = destinationId(jobId, name);
    const [{ status }, stored] = await Promise.all([
      readPut(this.#redis, jobId, name),
      this.queues.destination.find(id),
    ]);
    if (status === 'pending' && stored?.status !== 'pending') await this.queues.destination.replay(id);
  }

  /** False if the job has no such webhook. */
  async replayWebhook(jobId: string, deliveryId: string): Promise<boolean> {
    const isOwn = (await this.#redis.sismember(indexKey(jobId), deliveryId)) === 1;
    const stored = isOwn ? await this.queues.webhook.find(deliveryId) : undefined;
    const [payload] = readable(stored ? [stored.data] : [], (data) => readPayload(WebhookPayload, data));
    return isOwn && (await this.#replayWebhook(deliveryId, payload));
  }

  async #replayWebhook(id: string, payload: WebhookPayload | undefined): Promise<boolean> {
    if (!(await this.queues.webhook.replay(id))) return false;
    if (payload !== undefined) await this.#notePending(payload);
    return true;
  }

  /**
   * Resends webhooks that failed at or after this time; answers how many.
   * @param to only to this endpoint: a URL, whose query does not count
   */
  async resendWebhooks(tenant: string, sinceMs: number, to?: string): Promise<number> {
    const wanted = to && endpointOf(to).endpoint;
    const payloads: WebhookPayload[] = [];
    // Read completely first: a resent webhook leaves the list.
    for await (const { data } of this.queues.webhook.failedSince(sinceMs)) {
      const own = readable([data], (one) => readPayload(WebhookPayload, one)).filter(
        (payload) => payload.tenant === tenant,
      );
      payloads.push(...own.filter(({ url }) => wanted === undefined || endpointOf(url).endpoint === wanted));
    }
    let resent = 0;
    // Oldest first, in their original order.
    for (const payload of payloads.reverse()) {
      if (await this.#replayWebhook(payload.deliveryId, payload)) resent += 1;
    }
    return resent;
  }

  /** Oldest first. @param bodyOf the posted body */
  async list(
    jobId: string,
    bodyOf: (payload: WebhookPayload) => WebhookDelivery['body'],
  ): Promise<Delivery[]> {
    const members = await unlessUnreadable(
      () => ofItsType(this.#redis.smembers(indexKey(jobId))),
      (): string[] => [],
    );
    const found = await Promise.all(members.map((member) => this.#look(member, bodyOf)));
    return found
      .filter((one) => one !== undefined)
      .sort((one, other) => one.atMs - other.atMs)
      .map(({ delivery }) => delivery);
  }

  async #look(member: string, bodyOf: (payload: WebhookPayload) => WebhookDelivery['body']) {
    const [id = '', name = 'webhook'] = member.split(' ').reverse();
    const queue = name as keyof typeof this.queues;
    const found = await this.queues[queue].look(id);
    if (found === undefined) return undefined;
    const { stored, progress } = found;
    if (queue !== 'webhook') {
      const { data: of } = OfOutput.safeParse(stored.data);
      const delivery: Delivery = { kind: kindOf[queue], ...progress, ...of };
      return { atMs: stored.addedAtMs, delivery };
    }
    // Without its event there is nothing to show.
    const payload = await unlessUnreadable(
      () => readPayload(WebhookPayload, stored.data),
      () => undefined,
    );
    if (payload === undefined) return undefined;
    const { event, tenant, url, eventTimeMs: atMs } = payload;
    const endpoint = await this.queues.webhook.failingEndpoint(tenant, url);
    const delivery: Delivery = { kind: 'webhook', ...progress, ...endpoint, event, body: bodyOf(payload) };
    return { atMs, delivery };
  }

  /** State of the webhook for the job's end. */
  async webhookState(jobId: string): Promise<WebhookState> {
    const { webhook } = this.queues;
    const id = webhookId(jobId);
    const [stored, attempts] = await Promise.all([webhook.find(id), webhook.log.count(id)]);
    const { status = 'pending', lastError = null } = stored ?? {};
    const shown = { pending: lastError, delivered: null, failed: `WEBHOOK_FAILED: ${lastError}` };
    return { status, attempts, lastError: shown[status] };
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.queues).map((queue) => queue.close()));
  }
}
