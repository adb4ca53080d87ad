/** The answer to a submission that became one job (decisions A4). */
import type { AcceptedJob } from '../contract/answers.ts';
import { estimateSeconds } from './estimate.ts';
import type { Answer } from './idempotent.ts';
import type { ApiServices } from './route.ts';

export async function acceptedJob(services: ApiServices, jobId: string): Promise<Answer> {
  const estimatedTime = await estimateSeconds(services);
  const statusUrl = `${services.settings.publicUrl}/v1/status/${jobId}`;
  const data: AcceptedJob = { jobId, status: 'queued', estimatedTime, statusUrl };
  return {
    httpStatus: 202,
    headers: { Location: statusUrl, 'Retry-After': String(Math.max(1, Math.ceil(estimatedTime))) },
    data,
  };
}
