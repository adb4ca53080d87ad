/**
 * From what was measured to machines: a model of Soundpost under a steady load of jobs like those of docs/operations.md "Capacity". Every figure of a plan grows in proportion
 * to the load until it is rounded up to whole processes and machines.
 */

/** Measured by `bench`, on one machine, of one core or one process. */
export interface Measured {
  readonly encoding: EncodingSeconds;
  /** Submissions and questions for a state that one API process answers in a second. */
  readonly acceptsPerSecond: number;
  readonly questionsPerSecond: number;
  /** Processor time of an API for a byte that it takes as an upload, and for one that it hands out. */
  readonly apiSecondsPerByte: { readonly uploaded: number; readonly downloaded: number };
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

/** Seconds of a core that a job takes: whatever its length, and for each minute of its video. */
export interface EncodingSeconds {
  readonly perJob: number;
  readonly perMinute: number;
}

/** Jobs of one length, and how many of them one core ends in a minute. */
interface Rate {
  readonly minutes: number;
  readonly jobsPerCoreMinute: number;
}

/** The line through two lengths. */
export function encodingSeconds(short: Rate, long: Rate): EncodingSeconds {
  const [shortSeconds, longSeconds] = [60 / short.jobsPerCoreMinute, 60 / long.jobsPerCoreMinute];
  const perMinute = (longSeconds - shortSeconds) / (long.minutes - short.minutes);
  return { perMinute, perJob: Math.max(0, shortSeconds - perMinute * short.minutes) };
}

export interface Assumed {
  /** Length of a video. */
  readonly minutes: number;
  readonly sourceBitsPerSecond: number;
  /** Videos that come as an upload through the APIs, 0 to 1; the others lie at addresses. */
  readonly uploadedShare: number;
  /** Videos at addresses of which only the sound is fetched, 0 to 1; of the others everything is. */
  readonly sparseShare: number;
  /** Of each output its share of the jobs (together 1) and its rate. */
  readonly outputs: readonly {
    readonly name: string;
    readonly share: number;
    readonly bitsPerSecond: number;
  }[];
  readonly questionsPerJob: number;
  /** How long uploads, results and records are kept. */
  readonly uploadSeconds: number;
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
  /** Through all APIs together, from clients. */
  readonly uploadedBitsPerSecond: number;
  /** Of all workers together: fetched from sources, results written to the storage. */
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

/** Bytes of a video. */
function sourceBytes({ minutes, sourceBitsPerSecond }: Assumed): number {
  return (sourceBitsPerSecond * minutes * 60) / 8;
}

/** Bytes that workers fetch for a job, over all kinds of source. */
export function fetchedBytes({ fetchedShare }: Measured, assumed: Assumed): number {
  const { uploadedShare, sparseShare } = assumed;
  return sourceBytes(assumed) * (1 - uploadedShare) * (sparseShare * fetchedShare + 1 - sparseShare);
}

/** Bytes of a job that an API takes as an upload, over all kinds of source. */
export function uploadedBytes(assumed: Assumed): number {
  return sourceBytes(assumed) * assumed.uploadedShare;
}

/** Seconds of a core that a job takes. */
export function jobSeconds({ encoding }: Measured, { minutes }: Assumed): number {
  return encoding.perJob + encoding.perMinute * minutes;
}

/** Seconds of an API process that a job takes: accepting it, its questions, its upload, and its result once. */
function apiSeconds(measured: Measured, assumed: Assumed): number {
  const { acceptsPerSecond, questionsPerSecond, apiSecondsPerByte } = measured;
  return (
    1 / acceptsPerSecond +
    assumed.questionsPerJob / questionsPerSecond +
    uploadedBytes(assumed) * apiSecondsPerByte.uploaded +
    resultBytes(assumed) * apiSecondsPerByte.downloaded
  );
}

/** What a load takes. @param jobsPerMinute above 0 */
export function planFor(jobsPerMinute: number, measured: Measured, assumed: Assumed): Plan {
  const perSecond = jobsPerMinute / 60;
  const workerCores = (perSecond * jobSeconds(measured, assumed)) / assumed.busyShare;
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
    storageBytes:
      perSecond *
      (assumed.resultSeconds * resultBytes(assumed) + assumed.uploadSeconds * uploadedBytes(assumed)),
    uploadedBitsPerSecond: perSecond * uploadedBytes(assumed) * 8,
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
  const perWorkerMachine = (assumed.workerCores * assumed.busyShare * 60) / jobSeconds(measured, assumed);
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
      remedy: 'more of them; `S3_PUBLIC_ENDPOINT`, so that results leave from the bucket',
    },
    {
      what: `connections of one Redis (\`maxclients\` ${assumed.redisConnections})`,
      jobsPerMinute: (assumed.redisConnections / measured.connections.worker) * perWorkerMachine,
      remedy: 'larger workers, another `maxclients`, or cells',
    },
  ];
  return all.toSorted((one, other) => one.jobsPerMinute - other.jobsPerMinute);
}
