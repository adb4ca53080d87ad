/**
 * Shares out a volume's free space before it is written. Each piece of work of this process claims
 * its bytes first; unwritten claims and a reserve must fit. Other programs write too, so a full
 * disk stays possible.
 */
import { statfs } from 'node:fs/promises';
import { ServiceError } from 'soundpost-contract/errors';
import { inTime } from './deadline.ts';
import { DiskClaim } from './disk-claim.ts';

const GIB = 1024 ** 3;
const DEFAULT_RESERVE_BYTES = GIB;
const DEFAULT_RESERVE_SHARE = 0.05;

/** A network file system may not answer at all. */
const PATIENCE_MS = 900;

/** Other programs free space without a notification. */
const LOOK_AGAIN_MS = 1000;

/** @param configured DISK_RESERVE_BYTES; undefined: 1 GiB, or 5 % of a volume under 20 GiB */
export function reserveBytesOf(volumeBytes: number, configured: number | undefined): number {
  return configured ?? Math.min(DEFAULT_RESERVE_BYTES, volumeBytes * DEFAULT_RESERVE_SHARE);
}

export class DiskSpace {
  readonly #folder: string;
  readonly #reserveBytes: number | undefined;
  /** In order of arrival. */
  readonly #claims = new Set<DiskClaim>();
  #settling: Promise<void> | undefined;
  #isStale = false;
  #lookAgain: NodeJS.Timeout | undefined;

  /**
   * @param folder exists; its volume is meant
   * @param reserveBytes undefined: 1 GiB, or 5 % of a volume under 20 GiB; 0: everything fits
   */
  constructor(folder: string, reserveBytes?: number) {
    this.#folder = folder;
    this.#reserveBytes = reserveBytes;
  }

  /** Adds a piece of work to the queue. The caller releases the claim after its files are gone. */
  open(): DiskClaim {
    const claim = new DiskClaim(
      () => this.settle(),
      (ended) => {
        this.#claims.delete(ended);
        this.settle();
      },
    );
    this.#claims.add(claim);
    return claim;
  }

  /**
   * Claims at once or not at all, ahead of those that wait.
   * @param writtenBytes how much of it has been written so far
   * @returns undefined if it does not fit
   */
  async tryClaim(bytes: number, writtenBytes: () => number): Promise<DiskClaim | undefined> {
    const claim = this.open();
    claim.countBy(async () => writtenBytes());
    claim.claimedBytes = bytes;
    let fits = false;
    try {
      fits = (await this.#roomBytes(0)) >= 0;
    } finally {
      if (!fits) claim.release();
    }
    return fits ? claim : undefined;
  }

  /**
   * Whether less than the reserve is free.
   * @param wasLow then requires a tenth more, so that the state does not flap with every file
   */
  async isLow(wasLow = false): Promise<boolean> {
    const { freeBytes, reserveBytes } = await this.#look();
    return freeBytes < reserveBytes * (wasLow ? 1.1 : 1);
  }

  /** Grants waiting claims that fit. One run at a time; repeats if something changed during it. */
  settle(): void {
    this.#isStale = true;
    this.#settling ??= this.#settleAll().finally(() => {
      this.#settling = undefined;
      if (this.#isStale) this.settle();
    });
  }

  async #settleAll(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      const first = this.#waiting()[0];
      if (first === undefined) break;
      try {
        await this.#settleOne(first);
      } catch (error) {
        first.refuse(error);
      }
    }
    clearTimeout(this.#lookAgain);
    this.#lookAgain = undefined;
    if (this.#waiting().length > 0) {
      this.#lookAgain = setTimeout(() => this.settle(), LOOK_AGAIN_MS);
    }
  }

  async #settleOne(first: DiskClaim): Promise<void> {
    const roomBytes = await this.#roomBytes(first.wantedBytes);
    // The claims changed during the look, so the first one and the holders may differ.
    if (this.#isStale) return;
    if (first.wantedBytes <= roomBytes) {
      first.grant();
      this.#isStale = true;
      return;
    }
    const holders = [...this.#claims].filter((claim) => claim !== first && claim.claimedBytes > 0);
    // Working claims end by themselves and free their space.
    if (holders.some((claim) => !claim.isIdle)) return;
    // Deadlock: the last holder makes room for the first.
    (holders.at(-1) ?? first).refuse(outOfDiskSpace());
    this.#isStale = true;
  }

  /** Those that hold space first, since progress frees it; each in order of arrival. */
  #waiting(): DiskClaim[] {
    const waiting = [...this.#claims].filter((claim) => claim.wantedBytes > 0);
    return waiting.sort((a, b) => Number(b.claimedBytes > 0) - Number(a.claimedBytes > 0));
  }

  /**
   * Free bytes besides the reserve and all claims; negative if they do not fit. Exact only below
   * `neededBytes`. Files of claims may be on a volume that hangs too.
   */
  #roomBytes(neededBytes: number): Promise<number> {
    return inTime('statfs', PATIENCE_MS, this.#countRoom(neededBytes));
  }

  async #countRoom(neededBytes: number): Promise<number> {
    // No claim is exceeded, so written bytes are counted only if space is tight.
    const least = await this.#roomBeside([...this.#claims].map((claim) => claim.claimedBytes));
    if (least >= neededBytes) return least;
    return this.#roomBeside(await Promise.all([...this.#claims].map((claim) => claim.outstandingBytes())));
  }

  async #roomBeside(bytes: readonly number[]): Promise<number> {
    const { freeBytes, reserveBytes } = await this.#look();
    return bytes.reduce((room, each) => room - each, freeBytes - reserveBytes);
  }

  async #look(): Promise<{ freeBytes: number; reserveBytes: number }> {
    const nothingKnown = { freeBytes: Number.POSITIVE_INFINITY, reserveBytes: 0 };
    if (this.#reserveBytes === 0) return nothingKnown;
    const { bavail, blocks, bsize } = await inTime('statfs', PATIENCE_MS, statfs(this.#folder));
    // Some network and FUSE file systems report no size.
    if (blocks === 0) return nothingKnown;
    return { freeBytes: bavail * bsize, reserveBytes: reserveBytesOf(blocks * bsize, this.#reserveBytes) };
  }
}

// Detects a full volume or quota, and makes the error of a job without space.

/** Failures that mean a full volume or quota, including their causes. */
export function isDiskFull(error: unknown): boolean {
  for (let seen = error, depth = 0; seen instanceof Error && depth < 10; seen = seen.cause, depth += 1) {
    if ('code' in seen && (seen.code === 'ENOSPC' || seen.code === 'EDQUOT')) return true;
  }
  return false;
}

/** The error of a job without disk space; it is retried. */
export function outOfDiskSpace(cause?: unknown): ServiceError {
  return new ServiceError('INTERNAL_ERROR', 'the job failed because the service ran out of disk space', {
    cause,
  });
}
