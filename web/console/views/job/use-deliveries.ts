/** What was sent to the webhook of a job: asked for when something has happened that a webhook tells of, and again for as long as it may move. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Delivery } from 'soundpost-contract/answers';
import type { Job } from 'soundpost-contract/job';
import { api, isAborted, isPassing, sentence } from '../../session.ts';
import { isUnfinished } from '../../words.ts';

const LOOK_MS = 2000;
/** Of one that is on its way for hours. Each look in vain is followed by one after twice the time. */
const LONGEST_MS = 60_000;
/** What a change of the job brings about is sent soon after. */
const SETTLING_MS = 10_000;

export interface ToldDeliveries {
  /** Undefined until they are known. */
  readonly deliveries: readonly Delivery[] | undefined;
  readonly fault: string;
  /** As they are after a replay. */
  readonly setDeliveries: (deliveries: readonly Delivery[]) => void;
}

export function useDeliveries(job: Job): ToldDeliveries {
  const told = toldBy(job);
  const [deliveries, setDeliveries] = useState<readonly Delivery[] | undefined>(
    told === undefined ? [] : undefined,
  );
  const [fault, setFault] = useState('');
  const [replays, setReplays] = useState(0);
  const first = useRef(told);
  useEffect(() => {
    if (told === undefined) return;
    // What had happened before somebody looked is on its way by now, or was sent.
    const isNews = told !== first.current;
    const settledAt = Date.now() + SETTLING_MS;
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let seen = '';
    async function look(pauseMs: number): Promise<void> {
      let mayMove = false;
      let nextMs = Math.min(2 * pauseMs, LONGEST_MS);
      try {
        const { deliveries: found } = await api().deliveries(job.jobId, { signal: ending.signal });
        if (JSON.stringify(found) !== seen) {
          seen = JSON.stringify(found);
          nextMs = LOOK_MS;
          setDeliveries(found);
        }
        setFault('');
        const isSettling = (isNews || found.length === 0) && Date.now() < settledAt;
        mayMove = isSettling || found.some(({ status }) => status === 'pending');
      } catch (error) {
        if (isAborted(error)) return;
        setDeliveries((known) => known ?? []);
        setFault(sentence(error));
        mayMove = isPassing(error);
      }
      if (mayMove) timer = setTimeout(look, nextMs, nextMs);
    }
    void look(LOOK_MS);
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [job.jobId, told, replays]);
  return {
    deliveries,
    fault,
    setDeliveries(changed) {
      setDeliveries(changed);
      setReplays((times) => times + 1);
    },
  };
}

/** All of the job that a webhook tells of; undefined while there is nothing. */
function toldBy(job: Job): string | undefined {
  if (job.options.webhook === undefined || isUnfinished(job)) return undefined;
  const { status, voiceMessage, transcripts, destination, outputFiles } = job;
  const states = [
    voiceMessage,
    destination,
    ...(transcripts ?? []),
    ...outputFiles.map((file) => file.destination),
  ];
  return JSON.stringify([status, ...states.map((state) => state?.status)]);
}
