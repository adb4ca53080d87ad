/** The answer to a submission that became one job (decisions A4). */
import type { AcceptedJob } from 'soundpost-contract/answers';
import { estimateOf } from './estimate.ts';
import type { Answer } from './idempotent.ts';
import type { ApiSettings } from './route.ts';
import type { Submission } from './submission.ts';

export function acceptedJob(settings: ApiSettings, { jobIds: [jobId = ''], outlook }: Submission): Answer {
  const estimatedTime = estimateOf(outlook, settings);
  const statusUrl = `${settings.publicUrl}/v1/status/${jobId}`;
  const data: AcceptedJob = { jobId, status: 'queued', estimatedTime, statusUrl };
  return {
    httpStatus: 202,
    headers: { Location: statusUrl, 'Retry-After': String(Math.max(1, Math.ceil(estimatedTime))) },
    data,
  };
}
