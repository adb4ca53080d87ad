/**
 * Jobs in rows: what each is, how far it has come or why it failed, and what can be done with it.
 */
import { useEffect } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { shortTime } from '../../../shared/time.ts';
import { cancel, retry } from '../../job-actions.ts';
import { goTo } from '../../route.ts';
import { Button, StatusBadge, useWork } from '../../ui.tsx';
import {
  counted,
  isProbe,
  isUnfinished,
  mayHelpToRetry,
  nameOf,
  outputsOf,
  size,
  statusOf,
  stepWord,
  time,
} from '../../words.ts';

interface JobTableProps {
  readonly jobs: readonly Job[];
  readonly chosen: ReadonlySet<string>;
  /** @param chosen the ids of the rows that are chosen now */
  readonly onChoose: (chosen: readonly string[]) => void;
  readonly onFault: (text: string) => void;
}

export function JobTable({ jobs, chosen, onChoose, onFault }: JobTableProps) {
  const ids = jobs.map(({ jobId }) => jobId);
  const isWhole = ids.every((id) => chosen.has(id));
  return (
    <table class="job-table">
      <caption class="visually-hidden">Jobs</caption>
      <thead>
        <tr>
          <th scope="col">
            <label class="choose-page">
              <input
                type="checkbox"
                id="choose-page"
                checked={isWhole}
                onChange={() => onChoose(isWhole ? [] : ids)}
              />
              <span>Select all on this page</span>
            </label>
          </th>
          <th scope="col">Name</th>
          <th scope="col">State</th>
          <th scope="col">Format</th>
          <th scope="col" class="number">
            Duration
          </th>
          <th scope="col" class="number">
            Size
          </th>
          <th scope="col" class="number">
            Submitted
          </th>
          <th scope="col">
            <span class="visually-hidden">Action</span>
          </th>
        </tr>
      </thead>
      <tbody id="jobs">
        {jobs.map((job) => (
          <Row
            key={job.jobId}
            job={job}
            isChosen={chosen.has(job.jobId)}
            onChoose={(isChosen) =>
              onChoose(ids.filter((id) => (id === job.jobId ? isChosen : chosen.has(id))))
            }
            onFault={onFault}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly job: Job;
  readonly isChosen: boolean;
  readonly onChoose: (isChosen: boolean) => void;
  readonly onFault: (text: string) => void;
}

function Row({ job, isChosen, onChoose, onFault }: RowProps) {
  const status = statusOf(job);
  const name = nameOf(job);
  return (
    <tr class="row" data-job={job.jobId} data-status={status}>
      <td>
        <input
          type="checkbox"
          class="row-choice"
          aria-label={`Select ${name}`}
          checked={isChosen}
          onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
        />
      </td>
      <th scope="row" class="row-main">
        <div class="row-about">
          <a href={`#/jobs/${job.jobId}`} data-part="name">
            {name}
          </a>
          <About job={job} />
        </div>
      </th>
      <td>
        <StatusBadge status={status} />
      </td>
      <td>{outputsOf(job).map(formatOf).join(', ')}</td>
      <td class="number">{lengthOf(job)}</td>
      <td class="number">{job.outputFile ? size(job.outputFile.size) : ''}</td>
      <td class="number">
        <time dateTime={job.createdAt}>{shortTime(job.createdAt)}</time>
      </td>
      <td class="row-actions">
        <Action job={job} name={name} onFault={onFault} />
      </td>
    </tr>
  );
}

const formatOf = ({ format }: { readonly format: string }): string => format.toUpperCase();

function lengthOf({ outputFile, inputFile }: Job): string {
  const seconds = outputFile?.duration ?? inputFile?.duration;
  return typeof seconds === 'number' ? time(Math.round(seconds)) : '';
}

/** What moves, and what a finished job does not show in its columns. */
function About({ job }: { readonly job: Job }) {
  const { status, inputFile, outputFile, currentStep, progress, error } = job;
  if (status === 'processing') {
    return (
      <p class="soft">
        {stepWord(currentStep)} · {progress} %
        <progress max={100} value={progress} aria-label={stepWord(currentStep)} />
      </p>
    );
  }
  if (error?.code === 'JOB_CANCELLED') return null;
  // The cause itself, `HTTP 404 from cdn.example`, and not only that it failed.
  if (error !== undefined) return <p class="soft row-reason">{error.details ?? error.message}</p>;
  if (isProbe(job) && inputFile !== null)
    return <p class="soft">{counted(inputFile.tracks.length, 'track')}</p>;
  return outputFile !== null && outputFile.url === undefined ? <p class="soft">Expired</p> : null;
}

function Action({ job, name, onFault }: Pick<RowProps, 'job' | 'onFault'> & { readonly name: string }) {
  const { busy, fault, run } = useWork();
  useEffect(() => {
    if (fault !== '') onFault(fault);
  }, [fault]);
  if (isUnfinished(job)) {
    return (
      <Button
        class="small plain"
        icon="close"
        data-part="action"
        aria-label={`Cancel ${name}`}
        busy={busy}
        onClick={() => void run(() => cancel(job.jobId))}
      >
        Cancel
      </Button>
    );
  }
  return mayHelpToRetry(job) ? (
    <Button
      class="small plain"
      icon="retry"
      data-part="action"
      aria-label={`Retry ${name}`}
      busy={busy}
      onClick={() => void run(async () => goTo(`#/jobs/${await retry(job.jobId)}`))}
    >
      Retry
    </Button>
  ) : null;
}
