/** GET /v1/status/{jobId}: how a job is doing. HTTP 200 in every state of an existing job (decisions A4). */
import { jobFailureCodes, ServiceError } from '../../contract/errors.ts';
import { Job } from '../../contract/job.ts';
import { sendData, sendError } from '../answer.ts';
import { jobAnswer } from '../job-answer.ts';
import { ownedJob } from '../owned-job.ts';
import type { Route, RouteContext } from '../route.ts';

export const statusRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/v1/status/:jobId',
    access: { by: 'key', scope: 'read', rate: 'read' },
    reads: 'job',
    docs: {
      operationId: 'getStatus',
      summary: 'Ask how a job is doing',
      description:
        'Answers 200 in every state of an existing job; a failed one answers an error envelope with its own code. Poll every 2 to 5 seconds until the status is completed or failed.',
      tag: 'Jobs',
      answers: {
        200: { description: 'The job, or why it failed', data: Job, failures: jobFailureCodes },
      },
      errors: ['INVALID_JOB_ID', 'JOB_NOT_FOUND'],
    },
    handle: status,
  },
];

async function status(context: RouteContext): Promise<void> {
  const { response, services } = context;
  const record = await ownedJob(context);
  if (record.error !== null) {
    const { code, message, details } = record.error;
    const more = details === undefined ? {} : { details };
    sendError(response, new ServiceError(code, message, more), 200);
    return;
  }
  response.set('Cache-Control', 'no-store');
  sendData(response, 200, await jobAnswer(record, services));
}
