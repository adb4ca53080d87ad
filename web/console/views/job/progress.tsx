/** A job that waits or runs: its steps, percent, the time that is left, and ending it. */
import { useEffect } from 'preact/hooks';
import { type Job, type ProcessingStep, probeSteps, processingSteps } from 'soundpost-contract/job';
import { announce } from '../../announcements.ts';
import { cancel } from '../../job-actions.ts';
import { Button, Fault, Icon, useWork } from '../../ui.tsx';
import { about, isProbe, outputsOf, stepWord } from '../../words.ts';

export function Progress({ job, isAway }: { readonly job: Job; readonly isAway: boolean }) {
  const { busy, fault, run } = useWork();
  const { progress, currentStep, status } = job;
  useEffect(() => {
    if (currentStep !== null) announce(stepWord(currentStep));
  }, [currentStep]);
  return (
    <section id="job-progress" class="card" aria-labelledby="progress-title">
      <div class="card-head">
        <h2 id="progress-title">Progress</h2>
        <span id="progress-left" class="soft">
          {status === 'queued' ? 'Waiting in the queue' : timeLeft(job)}
        </span>
      </div>
      <div class="progress-line">
        <progress id="progress-bar" max={100} value={progress} aria-labelledby="progress-title" />
        <strong id="progress-percent">{`${progress} %`}</strong>
      </div>
      <Steps job={job} />
      <Fault text={fault} />
      <div class="card-foot">
        <span id="progress-live" class="soft live" role="status">
          {isAway ? 'Connection lost, reconnecting…' : ''}
        </span>
        <Button id="job-cancel" class="danger" busy={busy} onClick={() => void run(() => cancel(job.jobId))}>
          Cancel
        </Button>
      </div>
    </section>
  );
}

const timeLeft = ({ estimatedTimeRemaining: left }: Job): string =>
  left === undefined ? '' : `${about(left)} left`;

function Steps({ job }: { readonly job: Job }) {
  const levels = outputsOf(job).some((output) => 'normalize' in output && output.normalize);
  const all: readonly ProcessingStep[] = isProbe(job) ? probeSteps : processingSteps;
  const steps = all.filter((step) => step !== 'normalizing_audio' || levels);
  const at = job.currentStep === null ? -1 : steps.indexOf(job.currentStep);
  return (
    <ol id="steps" class="steps">
      {steps.map((step, index) => (
        <StepItem key={step} step={step} state={stateOf(index, at)} />
      ))}
    </ol>
  );
}

type StepState = 'done' | 'current' | 'to-come';

function stateOf(index: number, at: number): StepState {
  if (at === -1 || index > at) return 'to-come';
  return index === at ? 'current' : 'done';
}

function StepItem({ step, state }: { readonly step: ProcessingStep; readonly state: StepState }) {
  return (
    <li class={`step step-${state}`} data-step={step} aria-current={state === 'current' ? 'step' : undefined}>
      <span class="step-sign" aria-hidden="true">
        {state === 'done' ? <Icon name="done" /> : null}
      </span>
      <span>{stepWord(step)}</span>
    </li>
  );
}
