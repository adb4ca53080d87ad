/** Where a source and its tracks end, and whether that is where they should. */
import type { CommandInput } from './command.ts';
import { inputOf, type Job, runOnInput } from './input-run.ts';
import type { OutputPlan } from './plan.ts';
import { endsEarly } from './timeline.ts';
import { flvEnd, missingEnd } from './truncation.ts';

/** What is missing of a file that was cut off; null where it is whole, or nobody can tell. */
export async function truncationOf(job: Job): Promise<string | null> {
  const { container, sizeBytes } = job.probe;
  const missing = await missingEnd(job.input, container, sizeBytes);
  if (missing !== null || container.demuxer !== 'flv') return missing;
  const said = await flvEnd(job.input, sizeBytes);
  if (said === null) return null;
  // Of some pictures only a decoder knows the size, without which they are not copied.
  const end = await endOf(job, { ...inputOf(job), withVideo: true }, '0:v?', '0:a?');
  return endsEarly(end, said.declaredSeconds, said.isWhole)
    ? `the file is truncated: it ends at ${end.toFixed(1)} s of ${said.declaredSeconds.toFixed(1)} s`
    : null;
}

/** Where tracks end: each is asked for once, and what was counted on the way is not asked for. */
export class TrackEnds {
  readonly #job: Job;
  readonly #known = new Map<number, number>();

  constructor(job: Job) {
    this.#job = job;
  }

  /** @param seconds as the run that made a file of the plan counted them; null where it did not */
  note({ track, trim }: OutputPlan, seconds: number | null): void {
    if (trim === null && seconds !== null) this.#known.set(track.streamIndex, seconds);
  }

  async of({ track: { streamIndex } }: OutputPlan): Promise<number> {
    const seconds =
      this.#known.get(streamIndex) ?? (await endOf(this.#job, inputOf(this.#job), `0:${streamIndex}`));
    this.#known.set(streamIndex, seconds);
    return seconds;
  }
}

/** Where streams end on the source's clock, by their packets, seconds. */
async function endOf(job: Job, input: CommandInput, ...streams: readonly string[]): Promise<number> {
  const { outSeconds = 0 } = await runOnInput(
    job,
    {
      inputs: [input],
      outputs: [{ muxer: 'null', options: [...streams.flatMap((stream) => ['-map', stream]), '-c', 'copy'] }],
    },
    () => {},
  );
  return outSeconds;
}
