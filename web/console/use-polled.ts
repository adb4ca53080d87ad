/** What is asked of the service again for as long as somebody looks at it and it may move. */
import { useEffect, useState } from 'preact/hooks';
import { listen } from './live.ts';
import { isAborted, sentence } from './session.ts';
import { isUnfinished } from './words.ts';

const LOOK_MS = 3000;
/** Each look in vain is followed by one after twice the time. */
const LONGEST_MS = 60_000;
/** What the end of a job brings about happens soon after. */
const SETTLING_MS = 10_000;

interface PollOptions<Answer> {
  /** Another one is asked for at once, and what was answered about the one before is not shown. */
  readonly about?: string;
  /** Whether it may be another one next time. Ends of jobs are noticed anyway. */
  readonly mayMove: (answer: Answer) => boolean;
}

/** @returns the last answer, undefined until there is one; `refresh` asks at once */
export function usePolled<Answer>(
  ask: (signal: AbortSignal) => Promise<Answer>,
  { about = '', mayMove }: PollOptions<Answer>,
) {
  const [told, setTold] = useState<{ readonly about: string; readonly answer: Answer }>();
  const [fault, setFault] = useState('');
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let dueAt = Number.POSITIVE_INFINITY;
    let pauseMs = LOOK_MS;
    let seen = '';
    let settledAt = 0;
    function lookWithin(ms: number): void {
      if (ending.signal.aborted || dueAt <= Date.now() + ms) return;
      clearTimeout(timer);
      dueAt = Date.now() + ms;
      timer = setTimeout(look, ms);
    }
    async function look(): Promise<void> {
      dueAt = Number.POSITIVE_INFINITY;
      let isMoving = true;
      try {
        const answer = await ask(ending.signal);
        const text = JSON.stringify(answer);
        pauseMs = text === seen ? Math.min(2 * pauseMs, LONGEST_MS) : LOOK_MS;
        seen = text;
        isMoving = mayMove(answer);
        setTold({ about, answer });
        setFault('');
      } catch (error) {
        if (isAborted(error)) return;
        setFault(sentence(error));
      }
      if (isMoving || Date.now() < settledAt) lookWithin(pauseMs);
    }
    function moved(): void {
      settledAt = Date.now() + SETTLING_MS;
      pauseMs = LOOK_MS;
      lookWithin(LOOK_MS);
    }
    let wasLost = false;
    const leave = listen({
      onJob: (job) => isUnfinished(job) || moved(),
      onLost: () => {
        wasLost = true;
      },
      onFresh: () => wasLost && moved(),
    });
    void look();
    return () => {
      ending.abort();
      clearTimeout(timer);
      leave();
    };
  }, [about, turn]);
  return {
    answer: told?.about === about ? told.answer : undefined,
    fault,
    refresh: (): void => setTurn((turns) => turns + 1),
  };
}
