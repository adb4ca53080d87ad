/** What a webhook says about a job (audio-extraction.md "Events", decisions D): it follows from the record, so every try sends the same. */

import type { UrlSigner } from 'soundpost-kit/signing/signed-url';
import type { JobRecord } from './job-record.ts';
import type { WebhookPayload } from './payloads.ts';
import { filesView, optionsView, transcriptFileView } from './public-view.ts';

export function webhookBody(
  { event, eventTimeMs, voiceMessage, transcript, transcriptFile, name, destination }: WebhookPayload,
  record: JobRecord,
  signer: UrlSigner,
): { readonly event: WebhookPayload['event']; readonly [field: string]: unknown } {
  const { jobId, payload, result, error } = record;
  const timestamp = new Date(eventTimeMs).toISOString();
  const about = { batchId: payload.batchId, options: optionsView(payload) };
  switch (event) {
    case 'job.completed':
      return {
        event,
        jobId,
        status: 'completed',
        timestamp,
        downloadUrl: `/audio-extract/v1/download/${jobId}`,
        ...(result && filesView(jobId, result, signer)),
        ...about,
      };
    case 'job.failed':
      return { event, jobId, status: 'failed', timestamp, error, ...about };
    case 'voice.updated':
      return { event, jobId, timestamp, voiceMessage };
    case 'destination.updated':
      return { event, jobId, timestamp, name, destination };
    case 'transcript.updated':
      return {
        event,
        jobId,
        timestamp,
        transcript,
        ...(transcriptFile && { outputFile: transcriptFileView(jobId, transcriptFile, signer) }),
      };
  }
}
