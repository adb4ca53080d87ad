/**
 * From what was measured to machines: a model of Soundpost under a steady load of jobs like those of docs/operations.md "Capacity". Every figure of a plan grows in proportion
 * to the load until it is rounded up to whole processes and machines.
 */

/** Measured by `bench`, on one core or one process. */
export interface Measured {
  /** Jobs of {@link Assumed.minutes} that one core ends in a minute. */
  readonly jobsPerCoreMinute: number;
  /** Submissions and questions for a state that one API process answers in a second. */
  readonly acceptsPerSecond: number;
  readonly questionsPerSecond: number;
  /** What Redis holds of a job that waits, and of one that has ended and was told by webhook. */
  readonly waitingBytes: number;
  readonly keptBytes: number;
  /** Redis' processor time for a job with its questions, from submission to webhook. */
  readonly redisSecondsPerJob: number;
  readonly connections: { readonly api: number; readonly worker: number };
  /** Memory of a process under load. */
  readonly bytesOfProcess: { readonly api: number; readonly worker: number };
  /** Of a video at an address whose server sends ranges, 0 to 1. */
  readonly fetchedShare: number;
}

export interface Assumed {
  /** Length of a video. */
  readonly minutes: number;
  readonly sourceBitsPerSecond: number;
  /** Sources of which only the sound is fetched, 0 to 1; of the others everything is. */
  readonly sparseShare: number;
  /** Of each output its share of the jobs (together 1) and its rate. */
  readonly outputs: readonly {
    readonly name: string;
    readonly share: number;
    readonly bitsPerSecond: number;
  }[];
  readonly questionsPerJob: number;
  /** How long results and records are kept. */
  readonly resultSeconds: number;
  readonly recordSeconds: number;
  /** How long a job may wait at the worst. */
  readonly queueMinutes: number;
  /** Of a core, so that queues stay short, 0 to 1. */
  readonly busyShare: number;
  readonly workerCores: number;
  /** One ffmpeg, which is what a place among the encoders takes. */
  readonly encoderBytes: number;
  /** What one Redis may hold: its machine's memory less what copying it for its file takes. */
  readonly redisBytes: number;
  readonly redisConnections: number;
}

export interface Plan {
  /** Whole machines of {@link Assumed.workerCores}. */
  readonly workerMachines: number;
  readonly workerCores: number;
  readonly workerBytes: number;
  readonly apiProcesses: number;
  readonly redisBytes: number;
  /** Of one core, which is what Redis has. */
  readonly redisCores: number;
  readonly redisConnections: number;
  /** Redis servers, and so cells, that the load has to be spread over. */
  readonly cells: number;
  readonly storageBytes: number;
  /** Of all workers together: fetched from sources, written to the storage. */
  readonly fetchedBitsPerSecond: number;
  readonly writtenBitsPerSecond: number;
}

/** Bytes of a result, over the mix of outputs. */
export function resultBytes({ outputs, minutes }: Assumed): number {
  return outputs.reduce(
    (sum, { share, bitsPerSecond }) => sum + (share * bitsPerSecond * minutes * 60) / 8,
    0,
  );
}

/** Bytes that are fetched of a source, over both kinds. */
export function fetchedBytes(
  { fetchedShare }: Measured,
  { minutes, sourceBitsPerSecond, sparseShare }: Assumed,
): number {
  const whole = (sourceBitsPerSecond * minutes * 60) / 8;
  return whole * (sparseShare * fetchedShare + 1 - sparseShare);
}

/** Seconds of an API process that a job takes, with its questions. */
function apiSeconds(measured: Measured, { questionsPerJob }: Assumed): number {
  return 1 / measured.acceptsPerSecond + questionsPerJob / measured.questionsPerSecond;
}

/** What a load takes. @param jobsPerMinute above 0 */
export function planFor(jobsPerMinute: number, measured: Measured, assumed: Assumed): Plan {
  const perSecond = jobsPerMinute / 60;
  const workerCores = jobsPerMinute / (measured.jobsPerCoreMinute * assumed.busyShare);
  const workerMachines = Math.ceil(workerCores / assumed.workerCores);
  const apiProcesses = Math.ceil((perSecond * apiSeconds(measured, assumed)) / assumed.busyShare);
  const redisBytes =
    perSecond * assumed.recordSeconds * measured.keptBytes +
    jobsPerMinute * assumed.queueMinutes * measured.waitingBytes;
  const redisCores = perSecond * measured.redisSecondsPerJob;
  const redisConnections =
    workerMachines * measured.connections.worker + apiProcesses * measured.connections.api;
  return {
    workerMachines,
    workerCores,
    workerBytes: measured.bytesOfProcess.worker + assumed.workerCores * assumed.encoderBytes,
    apiProcesses,
    redisBytes,
    redisCores,
    redisConnections,
    cells: Math.ceil(
      Math.max(
        redisBytes / assumed.redisBytes,
        redisCores / assumed.busyShare,
        redisConnections / assumed.redisConnections,
      ),
    ),
    storageBytes: perSecond * assumed.resultSeconds * resultBytes(assumed),
    fetchedBitsPerSecond: perSecond * fetchedBytes(measured, assumed) * 8,
    writtenBitsPerSecond: perSecond * resultBytes(assumed) * 8,
  };
}

/** Where something ends that there is one of, and what is done then. */
export interface Limit {
  readonly what: string;
  readonly jobsPerMinute: number;
  readonly remedy: string;
}

/** Settings that end a load before machines do. */
export interface Settings {
  readonly submissionsPerMinuteOfKey: number;
  readonly queueLimit: number;
}

/** In seconds. */
export const DAY = 86_400;

/** For a reader: `1 day`, `7 days`. */
export const days = (seconds: number): string => (seconds === DAY ? '1 day' : `${seconds / DAY} days`);

/** From the first to the last that a growing load meets. */
export function limits(measured: Measured, assumed: Assumed, settings: Settings): Limit[] {
  const perWorkerMachine = assumed.workerCores * measured.jobsPerCoreMinute * assumed.busyShare;
  const memoryFor = (recordSeconds: number): number =>
    (assumed.redisBytes * 60) /
    (recordSeconds * measured.keptBytes + assumed.queueMinutes * 60 * measured.waitingBytes);
  const all: Limit[] = [
    {
      what: `one worker machine of ${assumed.workerCores} cores`,
      jobsPerMinute: perWorkerMachine,
      remedy: 'more of them',
    },
    {
      what: '`RATE_SUBMIT_PER_MINUTE`, for one key',
      jobsPerMinute: settings.submissionsPerMinuteOfKey,
      remedy: 'more keys, or another value; `UNFINISHED_PER_KEY` with it',
    },
    {
      what: `memory of one Redis, records kept for ${days(assumed.recordSeconds)}`,
      jobsPerMinute: memoryFor(assumed.recordSeconds),
      remedy: assumed.recordSeconds > DAY ? '`JOB_TTL_SECONDS` of a day; then cells' : 'cells',
    },
    ...(assumed.recordSeconds > DAY
      ? [
          {
            what: `memory of one Redis, records kept for ${days(DAY)}`,
            jobsPerMinute: memoryFor(DAY),
            remedy: 'cells',
          },
        ]
      : []),
    {
      what: `\`QUEUE_LIMIT\`, where jobs may wait for ${assumed.queueMinutes} min`,
      jobsPerMinute: settings.queueLimit / assumed.queueMinutes,
      remedy: 'another value: a waiting job costs Redis little',
    },
    {
      what: 'the core of one Redis',
      jobsPerMinute: (assumed.busyShare * 60) / measured.redisSecondsPerJob,
      remedy: 'cells',
    },
    {
      what: 'one API process',
      jobsPerMinute: (assumed.busyShare * 60) / apiSeconds(measured, assumed),
      remedy: 'more of them',
    },
    {
      what: `connections of one Redis (\`maxclients\` ${assumed.redisConnections})`,
      jobsPerMinute: (assumed.redisConnections / measured.connections.worker) * perWorkerMachine,
      remedy: 'larger workers, another `maxclients`, or cells',
    },
  ];
  return all.toSorted((one, other) => one.jobsPerMinute - other.jobsPerMinute);
}
