/** Several sources on their way: each row becomes its job, and keeps its place. */
import { useEffect } from 'preact/hooks';
import { announce } from '../../announcements.ts';
import { listen, useLive } from '../../live.ts';
import { Button, confirmed, Fault } from '../../ui.tsx';
import { isUnfinished } from '../../words.ts';
import { SourceList } from './source-card.tsx';
import { change, isRefused, type Source, sources } from './sources.ts';
import { useStore } from './store.ts';
import { refresh, startAnother } from './submit.ts';

/** While the stream of events does not stand. */
const LOOK_EVERY_MS = 3000;
/** Jobs run in order, so the first ones are those that move. */
const MOST_LOOKED_AT = 10;

export function Batch({ fault }: { readonly fault: string }) {
  const { list, pause } = useStore(sources);
  useJobs(list);
  const heading = headingOf(list);
  const isOver = list.every((source) => isRefused(source) || isEnded(source));
  useEffect(() => {
    if (isOver) announce(heading);
  }, [isOver]);
  return (
    <section class="card batch" aria-labelledby="batch-title">
      <div class="card-head">
        <h2 id="batch-title">{heading}</h2>
        <Button id="start-another" icon="new" onClick={() => void clear(list)}>
          Start another
        </Button>
      </div>
      {pause === '' ? null : <p class="note">{pause} The others follow automatically.</p>}
      <Fault text={fault} />
      <SourceList list={list} isBatch />
    </section>
  );
}

/** `30 sources: 27 completed, 3 failed` */
function headingOf(list: readonly Source[]): string {
  const completed = list.filter(({ job }) => job?.status === 'completed').length;
  const failed = list.filter((source) => source.job?.status === 'failed' || isRefused(source)).length;
  const others = list.length - completed - failed;
  const counts = [
    [completed, 'completed'],
    [failed, 'failed'],
    [others, 'pending'],
  ] as const;
  const told = counts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return `${list.length} sources: ${told.join(', ')}`;
}

async function clear(list: readonly Source[]): Promise<void> {
  const begun = list.filter((source) => source.jobId === undefined && !isRefused(source)).length;
  const isSure =
    begun === 0 ||
    (await confirmed({
      title: `Discard ${begun === 1 ? '1 source' : `${begun} sources`}?`,
      text: 'They have no job yet. Jobs that have started continue; find them in the history.',
      yes: 'Discard',
    }));
  if (isSure) startAnother();
}

/** Keeps the jobs of the rows as they are told; where nothing is told, they are asked for. */
function useJobs(list: readonly Source[]): void {
  const isLive = useLive();
  useEffect(
    () =>
      listen({
        onJob(job) {
          const source = sources.get().list.find(({ jobId }) => jobId === job.jobId);
          if (source !== undefined) change(source.id, { job });
        },
        onFresh: () => void refresh(unfinished()),
      }),
    [],
  );
  const hasUnfinished = list.some(isMoving);
  useEffect(() => {
    if (isLive || !hasUnfinished) return undefined;
    const looking = setInterval(() => void refresh(unfinished().slice(0, MOST_LOOKED_AT)), LOOK_EVERY_MS);
    return () => clearInterval(looking);
  }, [isLive, hasUnfinished]);
}

const isEnded = ({ job }: Source): boolean => job !== undefined && !isUnfinished(job);

const isMoving = ({ jobId, job }: Source): boolean =>
  jobId !== undefined && (job === undefined || isUnfinished(job));

const unfinished = (): string[] =>
  sources
    .get()
    .list.filter(isMoving)
    .flatMap(({ jobId }) => jobId ?? []);
