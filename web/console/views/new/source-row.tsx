/** One source in the list: what it is, how far its upload or its job is, and what can be done about it. */

import { sentence } from '../../session.ts';
import { Icon, StatusBadge } from '../../ui.tsx';
import { about, size, statusOf, stepWord } from '../../words.ts';
import { faultOf, isRefused, pause, remove, type Source, tryAgain } from './sources.ts';
import type { UploadState } from './upload.ts';

interface RowProps {
  readonly source: Source;
  /** Its reason then stands below the list, where it is told. */
  readonly isOnly: boolean;
}

export function SourceRow({ source, isOnly }: RowProps) {
  const { id, name, file, jobId } = source;
  const fault = faultOf(source) || jobFault(source);
  const isWrong = isRefused(source) || jobFault(source) !== '';
  return (
    <li
      class={`source-row${isWrong ? ' wrong' : ''}`}
      id={isOnly ? 'chosen' : undefined}
      data-source={id}
      data-state={stateOf(source)}
    >
      <Icon name={source.url === undefined ? 'file' : 'webhooks'} />
      <div class="source-what">
        {jobId === undefined ? (
          <strong id={isOnly ? 'chosen-name' : undefined} title={name}>
            {name}
          </strong>
        ) : (
          <a href={`#/jobs/${jobId}`} title={name}>
            {name}
          </a>
        )}
        <span class="soft" id={isOnly ? 'chosen-size' : undefined}>
          {aboutSource(source)}
        </span>
      </div>
      <div class="source-state">
        <JobState source={source} />
        {jobId === undefined ? <RemoveButton source={source} isOnly={isOnly} /> : null}
      </div>
      {jobId === undefined && source.upload !== undefined && file !== undefined ? (
        <UploadLine source={source} upload={source.upload} bytes={file.size} isOnly={isOnly} />
      ) : null}
      {source.job?.status === 'processing' ? (
        <progress max={100} value={source.job.progress} aria-label={`Progress of ${name}`} />
      ) : null}
      {fault === '' || isOnly ? null : <p class="source-fault">{fault}</p>}
      {source.mayTryAgain === true ? (
        <button type="button" class="small source-again" onClick={() => tryAgain(source)}>
          <Icon name="retry" />
          Try again
        </button>
      ) : null}
    </li>
  );
}

const jobFault = ({ job }: Source): string => (job?.error === undefined ? '' : sentence(job.error));

/** For tests and styles. */
const stateOf = (source: Source): string =>
  source.job?.status ??
  (source.jobId === undefined
    ? isRefused(source)
      ? 'refused'
      : (source.upload?.phase ?? 'ready')
    : 'queued');

function aboutSource({ file, uploaded, url, jobId, job }: Source): string {
  if (job?.status === 'processing') return `${stepWord(job.currentStep)} · ${job.progress} %`;
  if (file !== undefined) return size(file.size);
  if (uploaded !== undefined) return 'uploaded before';
  return url === undefined || jobId !== undefined ? '' : 'is fetched from its address';
}

function JobState({ source }: { readonly source: Source }) {
  if (source.job !== undefined) return <StatusBadge status={statusOf(source.job)} />;
  if (source.jobId !== undefined) return <StatusBadge status="queued" />;
  return isRefused(source) ? <span class="status status-failed">Not taken</span> : null;
}

function RemoveButton({ source: { id, name }, isOnly }: RowProps) {
  const label = isOnly ? 'Take another source' : `Remove ${name}`;
  return (
    <button
      type="button"
      class="round"
      id={isOnly ? 'chosen-remove' : undefined}
      aria-label={label}
      title={isOnly ? label : 'Remove'}
      onClick={({ currentTarget }) => {
        const row = currentTarget.closest('li');
        const near = row?.nextElementSibling ?? row?.previousElementSibling;
        remove(id);
        (near?.querySelector<HTMLElement>('.round') ?? document.getElementById('file'))?.focus();
      }}
    >
      <Icon name="close" />
    </button>
  );
}

interface UploadProps extends RowProps {
  readonly upload: UploadState;
  readonly bytes: number;
}

function UploadLine({ source, upload, bytes, isOnly }: UploadProps) {
  const { phase, sentBytes, resumedAt } = upload;
  const percent = bytes === 0 ? 100 : Math.floor((sentBytes / bytes) * 100);
  if (!isOnly && phase === 'refused') return null;
  return (
    <div
      class="upload"
      id={isOnly ? 'upload' : undefined}
      data-state={phase}
      data-resumed-at={String(resumedAt)}
    >
      <progress max={100} value={percent} aria-label={isOnly ? 'Upload' : `Upload of ${source.name}`} />
      <div class="upload-line">
        <span class="soft" id={isOnly ? 'upload-text' : undefined}>
          {textOf(upload, percent, bytes)}
        </span>
        <UploadButton source={source} upload={upload} isOnly={isOnly} />
      </div>
    </div>
  );
}

const buttonWords: Readonly<Partial<Record<UploadState['phase'], string>>> = {
  paused: 'Resume',
  failed: 'Try again',
};

/** Kept in its place, so that nothing moves. */
function UploadButton({ source, upload: { phase }, isOnly }: Omit<UploadProps, 'bytes'>) {
  const word = buttonWords[phase] ?? 'Pause';
  const isGone = phase === 'done' || phase === 'refused';
  return (
    <button
      type="button"
      class={`plain${isGone ? ' gone' : ''}`}
      id={isOnly ? 'upload-pause' : undefined}
      aria-label={isOnly ? undefined : `${word}: ${source.name}`}
      onClick={() => (word === 'Pause' ? pause(source.id) : tryAgain(source))}
    >
      {word}
    </button>
  );
}

function textOf(
  { phase, perSecond, sentBytes, resumedAt, fault }: UploadState,
  percent: number,
  bytes: number,
) {
  switch (phase) {
    case 'done':
      return 'Uploaded';
    case 'paused':
      return `Paused at ${percent} %`;
    case 'waiting':
      return `${percent} % · ${fault === '' ? 'connection lost' : 'the service lets it wait'}, trying again…`;
    case 'failed':
      return `Stopped at ${percent} %`;
    case 'refused':
      return 'Not uploaded';
    case 'queued':
      return 'Waits for its turn';
    case 'starting':
      return 'Beginning…';
    case 'uploading': {
      const left = perSecond > 0 ? ` · ${about((bytes - sentBytes) / perSecond)} left` : '';
      return `${percent} %${left}${resumedAt > 0 ? ' · goes on where it stopped' : ''}`;
    }
  }
}
