/** What can be done with several jobs at once, and how far that has come. */

import { useEffect, useRef } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { announce } from '../../announcements.ts';
import { reachable } from '../../session.ts';
import { Button, confirmed, Fault } from '../../ui.tsx';
import { counted, isUnfinished, mayHelpToRetry } from '../../words.ts';
import { CopyNote, useCopy } from '../job/copy.tsx';
import { useStore } from '../new/store.ts';
import { type BulkVerb, beginBulk, bulkState, forgetBulk, goOn, stopBulk } from './bulk-work.ts';

const words: Readonly<Record<BulkVerb, readonly [verb: string, done: string]>> = {
  retry: ['Retry', 'retried'],
  cancel: ['Cancel', 'cancelled'],
  erase: ['Erase', 'erased'],
};

const questions: Readonly<Record<BulkVerb, string>> = {
  retry: 'Each becomes a new job with the same source and settings, and counts as a submission.',
  cancel: 'They stop now. You can retry them.',
  erase: 'Their files are deleted and their links stop working. The jobs stay in the history.',
};

async function ask(verb: BulkVerb, jobs: readonly Job[]): Promise<void> {
  const what = `${words[verb][0]} ${counted(jobs.length)}`;
  const question = { title: `${what}?`, text: questions[verb], yes: what, isSafe: verb === 'retry' };
  if (!(await confirmed(question))) return;
  await beginBulk(
    verb,
    jobs.map(({ jobId }) => jobId),
  );
}

interface BulkProps {
  readonly jobs: readonly Job[];
  /** How many there are so far, while they are asked for. */
  readonly coming: number | undefined;
  readonly onClear: () => void;
}

export function BulkActions({ jobs, coming, onClear }: BulkProps) {
  const { copied, copy } = useCopy();
  const { work } = useStore(bulkState);
  // One thing after the other.
  if (work !== undefined || (jobs.length === 0 && coming === undefined)) return null;
  const can: Readonly<Record<BulkVerb, readonly Job[]>> = {
    retry: jobs.filter(mayHelpToRetry),
    cancel: jobs.filter(isUnfinished),
    erase: jobs.filter(({ outputFiles }) => outputFiles.some(({ url }) => url !== undefined)),
  };
  const addresses = jobs.flatMap(({ outputFile }) => outputFile?.url ?? []);
  const isNothing = can.retry.length + can.cancel.length + can.erase.length === 0;
  const button = (verb: BulkVerb, icon: string) =>
    can[verb].length === 0 ? null : (
      <Button
        class={`small${verb === 'erase' ? ' danger' : ''}`}
        icon={icon}
        onClick={() => void ask(verb, can[verb])}
      >
        {`${words[verb][0]} ${can[verb].length.toLocaleString()}`}
      </Button>
    );
  return (
    <fieldset class="bulk card">
      <legend class="visually-hidden">Selected jobs</legend>
      <strong class="bulk-count" role="status">
        {coming === undefined
          ? `${jobs.length.toLocaleString()} selected`
          : `Selecting… ${coming.toLocaleString()}`}
      </strong>
      {coming === undefined ? (
        <>
          {button('cancel', 'close')}
          {button('retry', 'retry')}
          {addresses.length === 0 ? null : (
            <Button
              class="small"
              icon="copy"
              onClick={() =>
                void copy(
                  addresses.map(reachable).join('\n'),
                  `${counted(addresses.length, 'address', 'addresses')} copied, one a line.`,
                )
              }
            >
              Copy {counted(addresses.length, 'address', 'addresses')}
            </Button>
          )}
          {button('erase', 'bin')}
          {isNothing ? <span class="soft">Nothing to retry, cancel or erase.</span> : null}
        </>
      ) : null}
      <Button class="small plain" onClick={onClear}>
        Clear selection
      </Button>
      <CopyNote copied={copied} id="addresses-copied" />
    </fieldset>
  );
}

/** Stands there until all is done and seen, also after a reload. */
export function BulkProgress({ onDone }: { readonly onDone: () => void }) {
  const { work, isRunning, isWaiting, fault } = useStore(bulkState);
  const wasRunning = useRef(isRunning);
  const isDone = work !== undefined && work.done === work.jobs.length;
  const told =
    work === undefined ? '' : `${(work.done - work.failed).toLocaleString()} ${words[work.verb][1]}`;
  useEffect(() => {
    if (wasRunning.current && !isRunning && isDone) {
      announce(told);
      onDone();
    }
    wasRunning.current = isRunning;
  }, [isRunning]);
  if (work === undefined) return null;
  const of = counted(work.jobs.length);
  return (
    <section class="bulk card" id="bulk-progress" aria-label={`${words[work.verb][0]} ${of}`}>
      <div class="bulk-progress">
        <span role="status">
          <strong>
            {isDone ? capital(told) : `${words[work.verb][0]}: ${work.done.toLocaleString()} of ${of}`}
          </strong>
          {isWaiting ? ' · waiting for the service or the rate limit' : ''}
          {isRunning || isDone ? '' : ' · stopped'}
        </span>
        {isDone ? null : (
          <progress max={work.jobs.length} value={work.done} aria-label={words[work.verb][0]} />
        )}
        <Fault
          text={
            fault ||
            (work.failed === 0 ? '' : `${counted(work.failed)} not ${words[work.verb][1]}: ${work.reason}`)
          }
        />
      </div>
      {isRunning ? (
        <Button class="small" onClick={stopBulk}>
          Stop
        </Button>
      ) : null}
      {isRunning || isDone ? null : (
        <Button class="small primary" onClick={() => void goOn()}>
          {`Continue with ${work.jobs.length - work.done}`}
        </Button>
      )}
      {isRunning ? null : (
        <Button class="small plain" onClick={forgetBulk}>
          Dismiss
        </Button>
      )}
    </section>
  );
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
