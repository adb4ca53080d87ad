/** What can be done with several jobs at once. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Job } from 'soundpost-contract/job';
import { announce } from '../../announcements.ts';
import { type BulkAction, inBulk } from '../../job-actions.ts';
import { reachable } from '../../session.ts';
import { Button, confirmed, type useWork } from '../../ui.tsx';
import { counted, isUnfinished, mayHelpToRetry } from '../../words.ts';
import { CopyNote, useCopy } from '../job/copy.tsx';

interface BulkProps {
  readonly jobs: readonly Job[];
  readonly work: ReturnType<typeof useWork>;
  readonly onDone: () => void;
  /** What else can be done with the choice. */
  readonly children: ComponentChildren;
}

interface Progress {
  readonly done: number;
  readonly of: number;
}

export function BulkActions({ jobs, work, onDone, children }: BulkProps) {
  const [progress, setProgress] = useState<Progress>();
  const { copied, copy } = useCopy();
  const ending = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => ending.current?.abort(), []);
  const running = jobs.filter(isUnfinished);
  const again = jobs.filter(mayHelpToRetry);
  const addresses = jobs.flatMap(({ outputFile }) => outputFile?.url ?? []);
  const finished = jobs.filter(({ outputFile }) => outputFile?.url !== undefined);

  /** One part after the other; what fails is counted, and the first reason said. */
  function all(chosen: readonly Job[], what: string, action: BulkAction): void {
    void work.run(async () => {
      ending.current = new AbortController();
      const of = chosen.length;
      setProgress({ done: 0, of });
      try {
        const failed = await inBulk(action, chosen, {
          signal: ending.current.signal,
          onDone: (done) => setProgress({ done, of }),
        });
        announce(`${of - failed.length} ${what}`);
        onDone();
        if (failed[0] !== undefined) {
          throw new Error(`${failed.length} of ${counted(of)} could not be ${what}: ${failed[0]}`);
        }
      } finally {
        setProgress(undefined);
      }
    });
  }

  async function eraseAll(): Promise<void> {
    const sure = await confirmed({
      title: `Erase the files of ${counted(finished.length)}?`,
      text: 'The files are removed from the service, and their addresses no longer work. The jobs stay in the history.',
      yes: `Erase ${finished.length}`,
    });
    if (sure) all(finished, 'erased', 'delete');
  }

  if (progress !== undefined) {
    return (
      <div class="bulk card">
        <label class="bulk-progress">
          {progress.done} of {counted(progress.of)} done
          <progress max={progress.of} value={progress.done} />
        </label>
        <Button class="small" onClick={() => ending.current?.abort()}>
          Stop
        </Button>
      </div>
    );
  }
  return (
    <fieldset class="bulk card">
      <legend class="visually-hidden">Chosen jobs</legend>
      <strong class="bulk-count">{jobs.length.toLocaleString()} chosen</strong>
      {children}
      {running.length === 0 ? null : (
        <Button
          class="small danger"
          icon="close"
          busy={work.busy}
          onClick={() => all(running, 'cancelled', 'delete')}
        >
          Cancel {running.length}
        </Button>
      )}
      {again.length === 0 ? null : (
        <Button
          class="small"
          icon="retry"
          busy={work.busy}
          onClick={() => all(again, 'tried again', 'retry')}
        >
          Try {again.length} again
        </Button>
      )}
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
          Copy addresses
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
      <CopyNote copied={copied} id="addresses-copied" />
    </fieldset>
  );
}
