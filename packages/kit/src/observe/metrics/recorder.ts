/** Turns what the parts tell of their work into metrics. */
import type { Observer } from './observer.ts';
import type { MetricRegistry } from './registry.ts';

export function recorder(metrics: MetricRegistry): Observer {
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
    keyCharged(key, processorSeconds) {
      metrics.count('soundpost_key_processor_seconds_total', { key }, processorSeconds);
    },
    stepEnded(step, seconds) {
      metrics.observe('soundpost_job_step_duration_seconds', { step }, seconds);
    },
    sourceFetched({ size, fetched }) {
      metrics.count('soundpost_source_bytes_total', {}, size);
      // What came along with the parts may be more than the file, of a small one.
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
