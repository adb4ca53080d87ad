/** What can be done with several jobs at once. */
import type { Job } from 'soundpost-contract/job';
import { announce } from '../../announcements.ts';
import { cancel, erase, retry } from '../../job-actions.ts';
import { Button, confirmed, type useWork } from '../../ui.tsx';
import { counted, isUnfinished, mayHelpToRetry } from '../../words.ts';

interface BulkProps {
  readonly jobs: readonly Job[];
  readonly work: ReturnType<typeof useWork>;
  readonly onDone: () => void;
}

export function BulkActions({ jobs, work, onDone }: BulkProps) {
  const running = jobs.filter(isUnfinished);
  const again = jobs.filter(mayHelpToRetry);
  const finished = jobs.filter(({ outputFile }) => outputFile?.url !== undefined);

  /** All at once; the first that fails is said, and the rest is done all the same. */
  function all(chosen: readonly Job[], what: string, act: (job: Job) => Promise<unknown>): void {
    void work.run(async () => {
      const results = await Promise.allSettled(chosen.map(act));
      const failed = results.find((result) => result.status === 'rejected');
      announce(`${results.filter(({ status }) => status === 'fulfilled').length} ${what}`);
      onDone();
      if (failed !== undefined) throw failed.reason;
    });
  }

  async function eraseAll(): Promise<void> {
    const sure = await confirmed({
      title: `Erase the files of ${counted(finished.length)}?`,
      text: 'The files are removed from the service, and their addresses no longer work. The jobs stay in the history.',
      yes: 'Erase them',
    });
    if (sure) all(finished, 'erased', (job) => erase(job.jobId));
  }

  return (
    <fieldset class="bulk card">
      <legend class="visually-hidden">Chosen jobs</legend>
      <strong class="bulk-count">{jobs.length} chosen</strong>
      {running.length === 0 ? null : (
        <Button
          class="small danger"
          icon="close"
          busy={work.busy}
          onClick={() => all(running, 'cancelled', (job) => cancel(job.jobId))}
        >
          Cancel {running.length}
        </Button>
      )}
      {again.length === 0 ? null : (
        <Button
          class="small"
          icon="retry"
          busy={work.busy}
          onClick={() => all(again, 'begun again', (job) => retry(job.jobId))}
        >
          Try {again.length} again
        </Button>
      )}
      {finished.length === 0 ? null : (
        <Button class="small" icon="bin" busy={work.busy} onClick={() => void eraseAll()}>
          Erase {finished.length}
        </Button>
      )}
      {running.length + again.length + finished.length === 0 ? (
        <span class="soft">Nothing can be done with these.</span>
      ) : null}
      <Button class="small plain" onClick={onDone}>
        Choose none
      </Button>
    </fieldset>
  );
}
