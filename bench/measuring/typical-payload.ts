/** What stands in the queue for a typical request. */
import { ExtractPayload } from '../../src/jobs/payloads.ts';
import { typicalJob } from './api.ts';

export const typicalPayload = ExtractPayload.parse({
  version: 1,
  tenant: 'benches1',
  ...typicalJob,
  options: { priority: 'normal' },
  batchId: null,
  retryOf: null,
});
