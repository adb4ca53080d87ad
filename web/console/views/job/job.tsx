/** One job: its progress while it runs, then its result, or why there is none. */
import { useEffect, useRef } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { announce } from '../../announcements.ts';
import { Fault, Icon, StatusBadge } from '../../ui.tsx';
import { isUnfinished, nameOf, statusOf, statusWord } from '../../words.ts';
import { JobDeliveries } from './deliveries.tsx';
import { Details } from './details.tsx';
import { Failure } from './failure.tsx';
import { Progress } from './progress.tsx';
import { Files, Result } from './result.tsx';
import { Send } from './send.tsx';
import { useJob } from './use-job.ts';

export function JobView({ jobId }: { readonly jobId: string }) {
  const { job, isAway, fault } = useJob(jobId);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // This script may have come after the view was opened.
    title.current?.focus({ preventScroll: true });
  }, []);
  useNews(job, title);
  return (
    <section id="view-job" class="view" aria-labelledby="job-title">
      <header class="view-head job-head">
        <a class="back" href="#/jobs">
          <Icon name="back" />
          History
        </a>
        <div class="title-row">
          <h1 id="job-title" tabIndex={-1} ref={title}>
            {job === undefined ? 'Job' : nameOf(job)}
          </h1>
          {job === undefined ? null : <StatusBadge status={statusOf(job)} id="job-status" />}
        </div>
        <p id="job-subtitle" class="soft">
          {job === undefined ? jobId : subtitleOf(job)}
        </p>
      </header>
      <Fault
        text={fault || (isAway && job === undefined ? 'The service does not respond, retrying…' : '')}
        id="job-error"
      />
      {job === undefined ? null : <Parts job={job} isAway={isAway} />}
    </section>
  );
}

function Parts({ job, isAway }: { readonly job: Job; readonly isAway: boolean }) {
  if (isUnfinished(job)) return <Progress job={job} isAway={isAway} />;
  const { outputFile, outputFiles, error } = job;
  return (
    <>
      {error === undefined ? null : <Failure job={job} error={error} />}
      {outputFile?.url === undefined ? null : <Result job={job} file={outputFile} url={outputFile.url} />}
      {outputFile !== null && outputFile.url === undefined ? <Erased /> : null}
      {outputFile === null && outputFiles.length > 0 ? <Files files={outputFiles} /> : null}
      {outputFile?.url === undefined ? null : <Send job={job} />}
      <Details job={job} />
      <JobDeliveries job={job} />
    </>
  );
}

function Erased() {
  return (
    <p id="job-erased" class="card soft">
      The files of this job have expired. To make them again, press “Reuse source” while the source still
      exists.
    </p>
  );
}

function subtitleOf({ jobId, createdAt, retryOf }: Job): string {
  const at = new Date(createdAt).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
  return `${jobId} · ${at}${retryOf === null ? '' : ` · retry of ${retryOf}`}`;
}

/** What has changed stands in the title of the page and is said. */
function useNews(job: Job | undefined, title: { readonly current: HTMLElement | null }): void {
  const before = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (job === undefined) return;
    const status = statusOf(job);
    const name = nameOf(job);
    document.title = `${status === 'processing' ? `${job.progress} % · ` : ''}${name} · Soundpost`;
    if (before.current !== undefined && before.current !== status) {
      announce(`${name}: ${statusWord(status)}`);
      // Whoever was on the button that has gone stays where the news is.
      if (document.activeElement === document.body) title.current?.focus({ preventScroll: true });
    }
    before.current = status;
  }, [job]);
}
