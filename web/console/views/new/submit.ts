/** Off they go: one source as a job, several as batches, each source as soon as it is there. */
import { SoundpostError } from 'soundpost-client/error';
import { MAX_BATCH_JOBS } from 'soundpost-contract/job-request';
import { announce } from '../../announcements.ts';
import { withMoves } from '../../live.ts';
import { api, sentence } from '../../session.ts';
import { choices, keepOutputs, type Wanted, wantedOf } from './choices.ts';
import { change, isReady, leaveAll, letGo, type Source, sourceOfJob, sources, whenReady } from './sources.ts';

let isSending = false;
let pausing: ReturnType<typeof setTimeout> | undefined;

/** Begins to make jobs of all sources. */
export function submitAll(): void {
  const wanted = wantedOf(choices.get(), {}, false);
  sources.set((state) => ({ ...state, wanted, fault: '' }));
}

export function startAnother(): void {
  clearTimeout(pausing);
  pausing = undefined;
  leaveAll();
  keepOutputs();
}

/** Sends what is ready, ten at most, and then what has become ready meanwhile. */
async function sendReady(): Promise<void> {
  const { wanted, list } = sources.get();
  const ready = list.filter(isReady).slice(0, MAX_BATCH_JOBS);
  if (wanted === undefined || isSending || pausing !== undefined || ready.length === 0) return;
  isSending = true;
  try {
    await send(ready, wanted);
  } finally {
    isSending = false;
  }
  await sendReady();
}

async function send(group: readonly Source[], wanted: Wanted): Promise<void> {
  try {
    const { jobs } = await api().batch({
      jobs: group.map((source) => ({ source: sourceOfJob(source), ...wanted })),
    });
    jobs.forEach(({ jobId }, index) => {
      const source = group[index];
      if (source !== undefined) change(source.id, { jobId });
    });
    await refresh(jobs.map(({ jobId }) => jobId));
  } catch (error) {
    refused(group, error);
  }
}

/** One bad job holds up its batch: it gets its reason, and the others are sent once more without it. */
function refused(group: readonly Source[], error: unknown): void {
  const { retryAfterSeconds, httpStatus = 0 } = error instanceof SoundpostError ? error : {};
  if (retryAfterSeconds !== undefined) {
    pauseFor(retryAfterSeconds, sentence(error));
    return;
  }
  const faults = error instanceof SoundpostError ? faultsOf(error.details ?? '') : new Map<number, string>();
  group.forEach((source, index) => {
    const own = faults.get(index);
    if (own !== undefined) change(source.id, { fault: own });
    else if (faults.size === 0) {
      change(source.id, { fault: sentence(error), mayTryAgain: httpStatus === 0 || httpStatus >= 500 });
    }
  });
}

function pauseFor(seconds: number, reason: string): void {
  pausing = setTimeout(() => {
    pausing = undefined;
    sources.set((state) => ({ ...state, pause: '' }));
  }, seconds * 1000);
  sources.set((state) => ({ ...state, pause: reason }));
}

/** `jobs[3].source.url: the address is not allowed; jobs[4]…`, by the number of the job; whose source it is, its row says. */
function faultsOf(details: string): Map<number, string> {
  const faults = new Map<number, string>();
  for (const [, index, text] of details.matchAll(/jobs\[(\d+)\]\.?(.*?)(?=; jobs\[|$)/gs)) {
    const known = faults.get(Number(index));
    const told = sentence({ message: text?.replace(/^source\.\w+: /, '') });
    faults.set(Number(index), known === undefined ? told : `${known} ${told}`);
  }
  return faults;
}

/** Asks for the state of jobs of the list. */
export async function refresh(jobIds: readonly string[]): Promise<void> {
  await Promise.allSettled(
    jobIds.map(async (jobId) => {
      const { answer, moved } = await withMoves(() => api().job(jobId));
      const source = sources.get().list.find((one) => one.jobId === jobId);
      if (source !== undefined) change(source.id, { job: moved.get(jobId) ?? answer });
    }),
  );
}

// Uploads arrive, faults are taken back, pauses end: each may make something ready.
sources.listen(() => void sendReady());

interface OneSubmission {
  readonly source: Source;
  /** Called where the upload has not arrived. */
  readonly onWait: () => void;
  /** What is wanted when it has: the choices may change until then. @returns undefined: it is not to begin */
  readonly wanted: () => Wanted | undefined;
}

/** Makes a job of the only source. @returns its id; undefined when there is none, because of something that was said where it is */
export async function submitOne({ source, onWait, wanted }: OneSubmission): Promise<string | undefined> {
  if (!isReady(source)) {
    onWait();
    announce('The job starts when the upload is complete.');
  }
  const ready = await whenReady(source.id);
  const asked = ready && wanted();
  if (ready === undefined || asked === undefined) return undefined;
  const { jobId } = await api().extract({ source: sourceOfJob(ready), ...asked });
  letGo(source.id);
  keepOutputs();
  return jobId;
}

/** The same of an address that only stands in the field. */
export async function submitAddress(url: string, wanted: Wanted): Promise<string> {
  const { jobId } = await api().extract({ source: { type: 'url', url }, ...wanted });
  leaveAll();
  keepOutputs();
  return jobId;
}
