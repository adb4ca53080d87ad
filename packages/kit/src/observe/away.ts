/**
 * Whether our own parts are away: Redis or the storage (decisions A7). The only place that tells.
 * Requests are then answered 503, attempts of workers cost no try, and health and metrics name the
 * reason. Another server that is away, such as the gateway, is none of these.
 */

interface Row {
  /** Whether Redis answers, but takes no writes. */
  readonly refusesWrites?: true;
  /** Of Redis' error replies: their first word, also when a script met them. */
  readonly replies?: readonly string[];
  /** How other messages of ioredis begin, which has no codes for them. */
  readonly messages?: readonly string[];
  /** For health: what is the matter, and the remedy. */
  readonly says: string;
}

const rows = {
  redis_full: {
    refusesWrites: true,
    replies: ['OOM'],
    says: 'Redis is full: raise maxmemory, or wait until records expire',
  },
  redis_not_persisting: {
    refusesWrites: true,
    replies: ['MISCONF'],
    says: 'Redis cannot write to its disk: make room, or see its log',
  },
  redis_read_only: {
    refusesWrites: true,
    replies: ['READONLY'],
    says: 'Redis is a replica: name the master in REDIS_URL, or finish the failover',
  },
  redis_few_replicas: {
    refusesWrites: true,
    replies: ['NOREPLICAS'],
    says: 'Redis has fewer replicas than min-replicas-to-write: start them',
  },
  redis_loading: { replies: ['LOADING'], says: 'Redis is loading its data: wait' },
  redis_no_master: {
    replies: ['MASTERDOWN', 'UNBLOCKED'],
    says: 'Redis is a replica without its master: wait for the failover, or start the master',
  },
  redis_cluster_down: {
    replies: ['CLUSTERDOWN', 'TRYAGAIN'],
    messages: ['Too many Cluster redirections', 'Failed to refresh slots cache'],
    says: 'the Redis Cluster does not serve all slots: see CLUSTER INFO',
  },
  redis_timeout: {
    replies: ['BUSY'],
    messages: ['Command timed out', 'Socket timeout'],
    says: 'Redis does not answer in time: see whether it hangs, and the network',
  },
  redis_unreachable: {
    replies: ['ERR max number of clients reached'],
    messages: [
      'Command aborted',
      'Connection is closed',
      'Reached the max retries per request',
      'All sentinels are unreachable',
      'None of startup nodes',
      'Cluster is ended',
    ],
    says: 'Redis cannot be reached: see whether it runs, and REDIS_URL',
  },
  storage: { says: 'the storage cannot be used: see its volume or bucket' },
} as const satisfies Record<string, Row>;

export type AwayReason = keyof typeof rows;
export const awayReasons = Object.keys(rows) as [AwayReason, ...AwayReason[]];

/** An error reply stands at the start, in older Redis behind the name of our script. */
const patterns = awayReasons.flatMap((reason) => {
  const { replies = [], messages = [] }: Row = rows[reason];
  const begins = [...replies.map((word) => `${word}\\b`), ...messages].map((text) => `^${text}`);
  const inScript = replies.map((word) => `\\bscript\\b.*\\b${word}\\b`);
  return begins.length === 0 ? [] : { reason, pattern: new RegExp([...begins, ...inScript].join('|')) };
});

/** Our own errors, by name. */
const named = new Map<string, AwayReason>([
  ['StorageUnavailable', 'storage'],
  ['StorageLate', 'storage'],
  ['NotReplicated', 'redis_few_replicas'],
]);
/** The system's codes for a volume that is unreachable, full or not ours. */
const STORAGE_CODES = new Set([
  'EACCES',
  'ECONNREFUSED',
  'ECONNRESET',
  'EDQUOT',
  'EIO',
  'ENOENT',
  'ENOSPC',
  'ENOTCONN',
  'EPIPE',
  'ESTALE',
  'ETIMEDOUT',
]);

/**
 * Which part of ours is away; undefined if the error says nothing of the kind. For the storage it
 * is a guess where the error is the system's own: ask the probe `storage` before acting on it.
 */
export function awayReason(error: unknown): AwayReason | undefined {
  return namedReason(error) ?? (hasCode(error, STORAGE_CODES) ? 'storage' : undefined);
}

/** By the errors of ioredis and of our storage, also as a cause. */
function namedReason(error: unknown): AwayReason | undefined {
  if (!(error instanceof Error)) return undefined;
  const found = named.get(error.name) ?? patterns.find(({ pattern }) => pattern.test(error.message))?.reason;
  return found ?? causesOf(error).map(namedReason).find(Boolean);
}

function hasCode(error: unknown, codes: ReadonlySet<unknown>): boolean {
  return error instanceof Error && 'code' in error && codes.has(error.code);
}

/** EXEC says only that a transaction was discarded (EXECABORT); ioredis attaches the reasons. */
function causesOf(error: Error): readonly unknown[] {
  const { previousErrors = [] } = error as { previousErrors?: readonly unknown[] };
  return [...previousErrors, error.cause].filter((cause) => cause !== error);
}

/** Whether Redis is unavailable, refuses writes, or is without a master now. */
export function isRedisAway(error: unknown): boolean {
  const reason = awayReason(error);
  return reason !== undefined && reason !== 'storage';
}

/** Whether Redis answers, but takes no writes. */
export function refusesWrites(reason: AwayReason): boolean {
  const row: Row = rows[reason];
  return row.refusesWrites === true;
}

/** A sentence for operators. */
export function sayAway(reason: AwayReason): string {
  return rows[reason].says;
}
