/** One job in a list: what it is, how far it has come, and what can be done with it. */
import { useEffect } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { shortTime } from '../shared/time.ts';
import { cancel, retry } from './job-actions.ts';
import { goTo } from './route.ts';
import { Button, Icon, StatusBadge, useWork } from './ui.tsx';
import {
  counted,
  isUnfinished,
  mayHelpToRetry,
  nameOf,
  outputsOf,
  type ShownStatus,
  size,
  statusOf,
  stepWord,
  time,
} from './words.ts';

interface JobRowProps {
  readonly job: Job;
  readonly onFault: (text: string) => void;
  /** Left out: it cannot be chosen here. */
  readonly onChoose?: (isChosen: boolean) => void;
  readonly isChosen?: boolean;
}

const signs: Readonly<Record<ShownStatus, string>> = {
  completed: 'done',
  failed: 'close',
  cancelled: 'close',
  processing: 'usage',
  queued: 'history',
};

export function JobRow({ job, onFault, onChoose, isChosen = false }: JobRowProps) {
  const status = statusOf(job);
  const name = nameOf(job);
  return (
    <li class="row" data-job={job.jobId} data-status={status}>
      {onChoose === undefined ? null : (
        <input
          type="checkbox"
          class="row-choice"
          aria-label={`Choose ${name}`}
          checked={isChosen}
          onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
        />
      )}
      <span class={`row-sign sign-${status}`} aria-hidden="true">
        <Icon name={signs[status]} />
      </span>
      <div class="row-main">
        <a href={`#/jobs/${job.jobId}`} data-part="name">
          {name}
        </a>
        <p class="soft">{aboutJob(job, status)}</p>
      </div>
      <StatusBadge status={status} />
      <div class="row-actions">
        <Action job={job} name={name} onFault={onFault} />
      </div>
      {status === 'processing' ? (
        <progress max={100} value={job.progress} aria-label={stepWord(job.currentStep)} />
      ) : null}
    </li>
  );
}

function aboutJob(job: Job, status: ShownStatus): string {
  const formats = outputsOf(job).map(({ format }) => format.toUpperCase());
  return [formats.join(', '), progressOf(job, status), shortTime(job.createdAt)].filter(Boolean).join(' · ');
}

function progressOf(
  { inputFile, outputFile, transcripts, currentStep, progress, error }: Job,
  status: ShownStatus,
): string {
  switch (status) {
    case 'completed':
      // A transcript alone has no sound.
      if (outputFile === null && transcripts !== undefined) return '';
      if (outputFile === null) return counted(inputFile?.tracks.length ?? 0, 'track');
      return outputFile.url === undefined
        ? 'no longer kept'
        : `${time(Math.round(outputFile.duration ?? 0))} · ${size(outputFile.size)}`;
    case 'processing':
      return `${stepWord(currentStep)} · ${progress} %`;
    case 'failed':
      return error?.message ?? '';
    default:
      return '';
  }
}

function Action({
  job,
  name,
  onFault,
}: {
  readonly job: Job;
  readonly name: string;
  readonly onFault: (text: string) => void;
}) {
  const { busy, fault, run } = useWork();
  useEffect(() => {
    if (fault !== '') onFault(fault);
  }, [fault]);
  if (isUnfinished(job)) {
    return (
      <Button
        class="small"
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
      class="small"
      icon="retry"
      data-part="action"
      aria-label={`Try again: ${name}`}
      busy={busy}
      onClick={() => void run(async () => goTo(`#/jobs/${await retry(job.jobId)}`))}
    >
      Try again
    </Button>
  ) : null;
}
