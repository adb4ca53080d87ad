/** One source in the list: what it is, how far its upload or its job is, and what can be done about it. */

import type { Job } from 'soundpost-contract/job';
import { sentence } from '../../session.ts';
import { Button, Icon, StatusBadge } from '../../ui.tsx';
import { about, size, statusOf, stepWord, time } from '../../words.ts';
import { faultOf, isRefused, pause, remove, type Source, tryAgain } from './sources.ts';
import type { UploadState } from './upload.ts';

interface RowProps {
  readonly source: Source;
  /** Its reason then stands below the list, where it is told. */
  readonly isOnly: boolean;
}

export function SourceRow({ source, isOnly }: RowProps) {
  const { id, jobId, upload } = source;
  const fault = faultOf(source) || jobFault(source);
  const isWrong = isRefused(source) || jobFault(source) !== '';
  return (
    <li
      class={`source-row${isWrong ? ' wrong' : ''}`}
      id={isOnly ? 'chosen' : undefined}
      data-source={id}
      data-state={stateOf(source)}
    >
      <Icon name={source.url === undefined ? 'file' : 'link'} />
      <div class="source-what">
        <Name source={source} isOnly={isOnly} />
        <span class="soft" id={isOnly ? 'chosen-size' : undefined}>
          {aboutSource(source, isOnly)}
        </span>
      </div>
      <div class="source-state">
        <JobState source={source} />
        {isOnly || upload === undefined ? null : <RoundUploadButton source={source} upload={upload} />}
        {jobId === undefined ? <RemoveButton source={source} isOnly={isOnly} /> : null}
      </div>
      <Progress source={source} isOnly={isOnly} />
      {fault === '' || isOnly ? null : <p class="source-fault">{fault}</p>}
      {source.mayTryAgain === true ? (
        <Button class="small source-again" icon="retry" onClick={() => tryAgain(source)}>
          Retry
        </Button>
      ) : null}
    </li>
  );
}

function Name({ source: { name, jobId }, isOnly }: RowProps) {
  return jobId === undefined ? (
    <strong id={isOnly ? 'chosen-name' : undefined} title={name}>
      {name}
    </strong>
  ) : (
    <a href={`#/jobs/${jobId}`} title={name}>
      {name}
    </a>
  );
}

/** Of the upload, and then of the job. */
function Progress({ source, isOnly }: RowProps) {
  const { name, upload, job } = source;
  if (job?.status === 'processing') {
    return <progress max={100} value={job.progress} aria-label={`Progress of ${name}`} />;
  }
  if (upload === undefined) return null;
  if (isOnly) return <OnlyUpload source={source} upload={upload} />;
  return isUnderWay(upload) ? (
    <progress max={100} value={percentOf(source)} aria-label={`Upload of ${name}`} />
  ) : null;
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

function aboutSource(source: Source, isOnly: boolean): string {
  const { file, uploaded, upload, jobId, job } = source;
  if (job?.status === 'processing') return `${stepWord(job.currentStep)} · ${job.progress} %`;
  if (job?.status === 'completed') return aboutResult(job);
  if (file !== undefined) {
    const progress = isOnly || upload === undefined || isRefused(source) || jobId !== undefined;
    return progress ? size(file.size) : `${size(file.size)} · ${textOf(source, upload)}`;
  }
  if (uploaded !== undefined) return 'uploaded before';
  return source.url === undefined ? '' : 'from its URL';
}

function aboutResult({ outputFile, outputFiles }: Job): string {
  if (outputFile === null) return '';
  const formats = outputFiles.map(({ format }) => format.toUpperCase()).join(', ');
  return [formats, time(Math.round(outputFile.duration ?? 0)), size(outputFile.size)].join(' · ');
}

function JobState({ source }: { readonly source: Source }) {
  if (source.job !== undefined) return <StatusBadge status={statusOf(source.job)} />;
  if (source.jobId !== undefined) return <StatusBadge status="queued" />;
  return isRefused(source) ? <span class="status status-failed">Unsupported</span> : null;
}

function RemoveButton({ source: { id, name }, isOnly }: RowProps) {
  const label = isOnly ? 'Change source' : `Remove ${name}`;
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

interface UploadProps {
  readonly source: Source;
  readonly upload: UploadState;
}

const isUnderWay = ({ phase }: UploadState): boolean => phase !== 'done' && phase !== 'refused';

const percentOf = ({ file, upload }: Source): number =>
  file === undefined || file.size === 0 ? 100 : Math.floor(((upload?.sentBytes ?? 0) / file.size) * 100);

function OnlyUpload({ source, upload }: UploadProps) {
  const { phase, resumedAt } = upload;
  return (
    <div class="upload" id="upload" data-state={phase} data-resumed-at={String(resumedAt)}>
      <progress id="upload-bar" max={100} value={percentOf(source)} aria-label="Upload" />
      <div class="upload-line">
        <span class="soft" id="upload-text">
          {textOf(source, upload)}
        </span>
        {/* Kept in its place, so that nothing moves. */}
        <button
          type="button"
          class={`plain${isUnderWay(upload) ? '' : ' gone'}`}
          id="upload-pause"
          onClick={() => press(source, upload)}
        >
          {buttonOf(upload).word}
        </button>
      </div>
    </div>
  );
}

function RoundUploadButton({ source, upload }: UploadProps) {
  if (!isUnderWay(upload)) return null;
  const { word, icon } = buttonOf(upload);
  return (
    <button
      type="button"
      class="round"
      aria-label={`${word}: ${source.name}`}
      title={word}
      onClick={() => press(source, upload)}
    >
      <Icon name={icon} />
    </button>
  );
}

function buttonOf({ phase }: UploadState): { readonly word: string; readonly icon: string } {
  if (phase === 'paused') return { word: 'Resume', icon: 'play' };
  return phase === 'failed' ? { word: 'Retry', icon: 'retry' } : { word: 'Pause', icon: 'pause' };
}

function press(source: Source, { phase }: UploadState): void {
  if (phase === 'paused' || phase === 'failed') tryAgain(source);
  else pause(source.id);
}

function textOf(source: Source, { phase, perSecond, sentBytes, resumedAt, fault }: UploadState): string {
  const percent = percentOf(source);
  switch (phase) {
    case 'done':
      return 'Uploaded';
    case 'paused':
      return `Paused at ${percent} %`;
    case 'waiting':
      return `${percent} % · ${fault === '' ? 'connection lost' : 'service busy'}, retrying…`;
    case 'failed':
      return `Stopped at ${percent} %`;
    case 'refused':
      return 'Not uploaded';
    case 'queued':
      return 'Queued';
    case 'starting':
      return 'Starting…';
    case 'uploading': {
      const bytesLeft = (source.file?.size ?? 0) - sentBytes;
      const left = perSecond > 0 ? ` · ${about(bytesLeft / perSecond)} left` : '';
      return `${percent} %${left}${resumedAt > 0 ? ' · resumed' : ''}`;
    }
  }
}
