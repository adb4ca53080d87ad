/** Answers a scrape: reads the gauges on demand, then writes all metrics. */
import { within } from 'soundpost-base/deadline';
import { ConnectionState, TransportKind } from 'soundpost-contract/gateway-instances';
import type { Probes } from '../probes.ts';
import { type Observer, silentObserver } from './observer.ts';
import { MetricRegistry } from './registry.ts';
import { type Part, type queueLabel, queueStates } from './table.ts';

interface QueueFigures extends Readonly<Record<(typeof queueStates)[number], number>> {
  readonly queue: (typeof queueLabel)[number];
  readonly oldestAgeSeconds: number;
}

interface InstanceState {
  readonly transport: TransportKind;
  readonly state: ConnectionState;
}

/** Read at each scrape. A source that fails or is too slow leaves its metrics out. */
interface Sources {
  /** Rejects if Redis does not answer. */
  readonly redis?: () => Promise<unknown>;
  readonly queues?: () => Promise<readonly QueueFigures[]>;
  readonly instances?: () => Promise<readonly InstanceState[]>;
  readonly probes?: () => ReturnType<Probes['figures']>;
  readonly worker?: () => { readonly busy: number; readonly places: number };
}

/** Scrapes within this time share one reading. */
const FRESH_MS = 1000;
/** Slower sources are left out of this scrape. */
const DEADLINE_MS = 1500;

export class Metrics {
  readonly #registry: MetricRegistry;
  #sources: Sources = {};
  #looked: { readonly atMs: number; readonly done: Promise<void> } | undefined;
  readonly observer: Observer;

  /**
   * @param of the parts in this process; none: nothing is counted
   * @param version of the build
   */
  constructor(of: readonly Part[], version: string) {
    this.#registry = new MetricRegistry(of);
    this.observer = of.length === 0 ? silentObserver : recorder(this.#registry);
    this.#registry.set('soundpost_build_info', { version, parts: of.join('+') }, 1);
    this.#registry.set('soundpost_ffmpeg_processes', { tool: 'ffmpeg' }, 0);
    this.#registry.set('soundpost_ffmpeg_processes', { tool: 'ffprobe' }, 0);
  }

  get registry(): MetricRegistry {
    return this.#registry;
  }

  /** Adds sources to read at each scrape; a later one replaces an earlier one. */
  read(sources: Sources): void {
    this.#sources = { ...this.#sources, ...sources };
  }

  /** The answer to a scrape, within 2 s, whatever is unavailable. */
  async scrape(): Promise<{ readonly contentType: string; readonly text: string }> {
    if (this.#looked === undefined || Date.now() - this.#looked.atMs >= FRESH_MS) {
      this.#looked = { atMs: Date.now(), done: this.#look() };
    }
    await this.#looked.done;
    return { contentType: this.#registry.contentType, text: await this.#registry.text() };
  }

  async #look(): Promise<void> {
    const { redis, probes, queues, instances, worker } = this.#sources;
    const [ping, figures, states] = await Promise.all([
      inTime(redis?.()),
      inTime(queues?.()),
      inTime(instances?.()),
    ]);
    this.#noteQueues(figures);
    if (redis !== undefined) this.#registry.set('soundpost_redis_up', {}, ping === undefined ? 0 : 1);
    for (const [name, value] of probes?.() ?? []) this.#registry.set(name, {}, value);
    this.#noteInstances(states);
    if (worker !== undefined) {
      const { busy, places } = worker();
      this.#registry.set('soundpost_worker_encoding_places', { state: 'busy' }, busy);
      this.#registry.set('soundpost_worker_encoding_places', { state: 'free' }, places - busy);
    }
  }

  #noteInstances(states: readonly InstanceState[] | undefined): void {
    this.#registry.forget('soundpost_gateway_instances');
    if (states === undefined) return;
    for (const transport of TransportKind.options) {
      for (const state of ConnectionState.options) {
        const count = states.filter((one) => one.transport === transport && one.state === state).length;
        this.#registry.set('soundpost_gateway_instances', { transport, state }, count);
      }
    }
  }

  #noteQueues(figures: readonly QueueFigures[] | undefined): void {
    this.#registry.forget('soundpost_queue_jobs');
    this.#registry.forget('soundpost_queue_oldest_job_age_seconds');
    for (const { queue, oldestAgeSeconds, ...counts } of figures ?? []) {
      for (const state of queueStates) {
        this.#registry.set('soundpost_queue_jobs', { queue, state }, counts[state]);
      }
      this.#registry.set('soundpost_queue_oldest_job_age_seconds', { queue }, oldestAgeSeconds);
    }
  }
}

/** Undefined if it fails or is too slow. */
async function inTime<T>(asked: Promise<T> | undefined): Promise<T | undefined> {
  return asked && within(DEADLINE_MS, () => asked).catch(() => undefined);
}

// Turns the reports of the parts into metrics.

function recorder(metrics: MetricRegistry): Observer {
  return {
    jobsSubmitted(outcome, count, key) {
      metrics.count('soundpost_key_jobs_submitted_total', { key, outcome }, count);
      metrics.count('soundpost_jobs_submitted_total', { outcome }, count);
    },
    jobTaken(waitedSeconds) {
      metrics.observe('soundpost_job_wait_seconds', {}, waitedSeconds);
    },
    jobEnded(end, seconds, key) {
      metrics.count('soundpost_key_jobs_finished_total', { key, state: end.state });
      const code = end.state === 'completed' ? 'OK' : end.code;
      metrics.count('soundpost_jobs_finished_total', { state: end.state, code });
      if (seconds !== undefined) {
        metrics.observe('soundpost_job_duration_seconds', { state: end.state }, seconds);
      }
    },
    partAway(reason) {
      metrics.count('soundpost_away_total', { reason });
    },
    keyHeld(key, limit) {
      metrics.count('soundpost_key_held_total', { key, limit });
    },
    keyCharged(key, processorSeconds) {
      metrics.count('soundpost_key_processor_seconds_total', { key }, processorSeconds);
    },
    stepEnded(step, seconds) {
      metrics.observe('soundpost_job_step_duration_seconds', { step }, seconds);
    },
    sourceFetched({ size, fetched }) {
      metrics.count('soundpost_source_bytes_total', {}, size);
      // The parts of a small file can be more than the file, since gaps are fetched too.
      metrics.count('soundpost_source_bytes_saved_total', {}, Math.max(0, size - fetched));
    },
    outputMade(format, bytes, audioSeconds) {
      metrics.count('soundpost_output_bytes_total', { format }, bytes);
      metrics.count('soundpost_audio_seconds_total', { format }, audioSeconds);
    },
    webhookTried(kind, outcome, seconds) {
      metrics.count('soundpost_webhook_attempts_total', { kind, outcome });
      metrics.observe('soundpost_webhook_attempt_duration_seconds', { kind }, seconds);
    },
    webhookGivenUp(kind) {
      metrics.count('soundpost_webhooks_given_up_total', { kind });
    },
    voiceTried(outcome, seconds) {
      metrics.count('soundpost_voice_attempts_total', { outcome });
      metrics.observe('soundpost_voice_attempt_duration_seconds', {}, seconds);
    },
    voiceEnded(status) {
      metrics.count('soundpost_voice_messages_total', { status });
    },
    destinationTried(outcome, seconds) {
      metrics.count('soundpost_destination_attempts_total', { outcome });
      metrics.observe('soundpost_destination_attempt_duration_seconds', {}, seconds);
    },
    destinationEnded(status) {
      metrics.count('soundpost_destinations_total', { status });
    },
    transcriptTried(outcome, seconds) {
      metrics.count('soundpost_transcript_parts_total', { outcome });
      metrics.observe('soundpost_transcript_part_duration_seconds', {}, seconds);
    },
    transcriptEnded(status) {
      metrics.count('soundpost_transcripts_total', { status });
    },
    toolStarted(tool) {
      const startedAt = performance.now();
      metrics.shift('soundpost_ffmpeg_processes', { tool }, 1);
      return (ending) => {
        metrics.shift('soundpost_ffmpeg_processes', { tool }, -1);
        const seconds = (performance.now() - startedAt) / 1000;
        metrics.observe('soundpost_ffmpeg_run_duration_seconds', { tool, ending }, seconds);
      };
    },
    messageSent(transport, outcome, seconds) {
      metrics.count('soundpost_gateway_sends_total', { transport, outcome });
      metrics.observe('soundpost_gateway_send_duration_seconds', { transport }, seconds);
    },
  };
}
