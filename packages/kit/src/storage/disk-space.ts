/**
 * The free space of a volume, shared out before it is written to. Each piece of work of this process claims what it is going to
 * write; what is claimed and not yet written, and a reserve, have to fit what is free. Other processes and other programs write to the
 * volume as well, so a full disk stays possible.
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

/** Others free space too, and nobody tells us. */
const LOOK_AGAIN_MS = 1000;

/** What stays free of a volume, bytes. @param configured DISK_RESERVE_BYTES; undefined: 1 GiB, or 5 % of less than 20 GiB */
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
   * @param reserveBytes what stays free; undefined: 1 GiB, or 5 % of a volume of less than 20 GiB; 0: everything always fits
   */
  constructor(folder: string, reserveBytes?: number) {
    this.#folder = folder;
    this.#reserveBytes = reserveBytes;
  }

  /** A piece of work joins the line. Whoever opens a claim releases it, after its files are gone. */
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
   * Claims at once or not at all, overtaking those that wait.
   * @param writtenBytes how much of it has been written so far
   * @returns undefined when it does not fit
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
   * @param wasLow then a tenth of the reserve more has to be free, so that it does not change with every file
   */
  async isLow(wasLow = false): Promise<boolean> {
    const { freeBytes, reserveBytes } = await this.#look();
    return freeBytes < reserveBytes * (wasLow ? 1.1 : 1);
  }

  /** Lets in whoever fits now; one call at a time, and once more when something changed meanwhile. */
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
    // Somebody came or went meanwhile: then it has to be looked at anew who is first, and who works.
    if (this.#isStale) return;
    if (first.wantedBytes <= roomBytes) {
      first.grant();
      this.#isStale = true;
      return;
    }
    const holders = [...this.#claims].filter((claim) => claim !== first && claim.claimedBytes > 0);
    // What works ends by itself and frees its space.
    if (holders.some((claim) => !claim.isIdle)) return;
    // Nobody moves: the last that came makes room for the first.
    (holders.at(-1) ?? first).refuse(outOfDiskSpace());
    this.#isStale = true;
  }

  /** Those that hold something first, since they free it when they go on; each in order of arrival. */
  #waiting(): DiskClaim[] {
    const waiting = [...this.#claims].filter((claim) => claim.wantedBytes > 0);
    return waiting.sort((a, b) => Number(b.claimedBytes > 0) - Number(a.claimedBytes > 0));
  }

  /**
   * What is free beside the reserve and all claims, where that is less than what is needed; negative when they do not fit. Files of claims may lie on
   * a volume that hangs as well.
   */
  #roomBytes(neededBytes: number): Promise<number> {
    return inTime('statfs', PATIENCE_MS, this.#countRoom(neededBytes));
  }

  async #countRoom(neededBytes: number): Promise<number> {
    // Nobody writes more than he claimed: what has been written is only looked for where space is tight.
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
    // Some network and FUSE file systems do not say how large they are.
    if (blocks === 0) return nothingKnown;
    return { freeBytes: bavail * bsize, reserveBytes: reserveBytesOf(blocks * bsize, this.#reserveBytes) };
  }
}

// A full volume, or a quota that is used up: how it is told from other faults, and what a job says
// of it.

/** Failures that mean a full volume or a used-up quota. Their causes are looked at as well. */
export function isDiskFull(error: unknown): boolean {
  for (let seen = error, depth = 0; seen instanceof Error && depth < 10; seen = seen.cause, depth += 1) {
    if ('code' in seen && (seen.code === 'ENOSPC' || seen.code === 'EDQUOT')) return true;
  }
  return false;
}

/** What a job fails with that found no room; it is tried again. */
export function outOfDiskSpace(cause?: unknown): ServiceError {
  return new ServiceError(
    'INTERNAL_ERROR',
    'the job could not be finished: the service ran out of disk space',
    { cause },
  );
}
