/** Why there is no result, and the one thing that helps. */
import type { Job } from 'soundpost-contract/job';
import { retry } from '../../job-actions.ts';
import { goTo } from '../../route.ts';
import { sentence } from '../../session.ts';
import { Button, Fault, useWork } from '../../ui.tsx';
import { remedyFor } from './remedy.ts';

interface FailureProps {
  readonly job: Job;
  readonly error: NonNullable<Job['error']>;
}

export function Failure({ job, error: { code, message, details } }: FailureProps) {
  const { busy, fault, run } = useWork();
  const { remedy, mayRetry } = remedyFor(job);
  return (
    <section id="job-failed" class="card failed" aria-labelledby="failed-title">
      <h2 id="failed-title">{code === 'JOB_CANCELLED' ? 'Cancelled' : 'Job failed'}</h2>
      {/* Without its code: what helps stands below, by its cause. */}
      <p id="failed-text">{sentence({ message, details })}</p>
      <p id="failed-remedy" class="soft">
        {remedy}
      </p>
      <Fault text={fault} />
      <div class="card-foot">
        <code id="failed-code">{code}</code>
        {mayRetry ? (
          <Button
            id="job-retry"
            class="primary"
            icon="retry"
            busy={busy}
            onClick={() => void run(async () => goTo(`#/jobs/${await retry(job.jobId)}`))}
          >
            Retry
          </Button>
        ) : null}
      </div>
    </section>
  );
}
