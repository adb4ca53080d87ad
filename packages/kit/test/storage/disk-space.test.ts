// @module-tag mount
/** Who may write how much, on a real volume that is really too small. */
import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unless } from 'soundpost-testing/needs';
import { makeSmallVolume, type SmallVolume } from 'soundpost-testing/small-volume';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StorageLate } from '../../src/storage/deadline.ts';
import type { DiskClaim } from '../../src/storage/disk-claim.ts';
import { DiskSpace } from '../../src/storage/disk-space.ts';
import { hangVolume, whyNoHangingVolumes } from './hanging-volume.ts';

/** Less than its name says: what the tests are about is the same, and takes less time to write. */
const MIB = 256 * 1024;
const RESERVE = 4 * MIB;
const OUT_OF_SPACE = 'the job failed because the service ran out of disk space';
const never = new AbortController().signal;

let volume: SmallVolume;
let space: DiskSpace;
beforeEach(async () => {
  volume = await makeSmallVolume(20 * MIB);
  space = new DiskSpace(volume.folder, RESERVE);
});
afterEach(() => volume.remove());

interface Work {
  readonly claim: DiskClaim;
  grow(mib: number, signal?: AbortSignal): Promise<void>;
  write(mib: number): Promise<void>;
  end(): Promise<void>;
}

/** A job with a folder of its own on the volume. */
async function begin(name: string): Promise<Work> {
  const folder = join(volume.folder, name);
  await mkdir(join(folder, 'scratch'), { recursive: true });
  const claim = space.open();
  claim.countIn(folder);
  return {
    claim,
    grow: (mib, signal = never) => claim.grow(mib * MIB, signal),
    write: (mib) => appendFile(join(folder, 'scratch', 'file'), Buffer.alloc(mib * MIB)),
    async end() {
      await rm(folder, { recursive: true });
      claim.release();
    },
  };
}

/** Whether a promise has come to an end, after whatever is quick has happened. */
async function isWaiting(work: Work): Promise<boolean> {
  await until('the line has moved', () => work.claim.isIdle);
  return work.claim.isIdle;
}

describe('a claim', () => {
  it('is granted while it fits beside the reserve, and refused when nobody else holds any', async () => {
    const work = await begin('one');
    await work.grow(15);
    await expect(work.grow(2)).rejects.toThrow(OUT_OF_SPACE);
    await work.end();
    await expect((await begin('two')).grow(17)).rejects.toMatchObject({ code: 'INTERNAL_ERROR' });
  });

  it('counts what is still to be written, and not once more what has been', async () => {
    const work = await begin('one');
    await work.grow(8);
    await work.write(8);
    const other = await begin('two');
    await other.grow(7);
    const third = await begin('three');
    const waiting = third.grow(2);
    expect(await isWaiting(third)).toBe(true);
    await work.end();
    await waiting;
  });

  it('waits for others, in the order in which the jobs came, and takes a larger one before a smaller that came later', async () => {
    const work = await begin('one');
    await work.grow(10);
    const [large, small] = [await begin('large'), await begin('small')];
    const order: string[] = [];
    const smallWaits = small.grow(7).then(() => order.push('small'));
    const largeWaits = large.grow(8).then(() => order.push('large'));
    expect(await isWaiting(small)).toBe(true);
    expect(await isWaiting(large)).toBe(true);
    await work.end();
    await Promise.all([smallWaits, largeWaits]);
    expect(order).toEqual(['large', 'small']);
  });

  it('lets the job that has begun go on before one that has not', async () => {
    const [first, second] = [await begin('first'), await begin('second')];
    await first.grow(10);
    const secondWaits = second.grow(10);
    expect(await isWaiting(second)).toBe(true);
    await first.grow(5);
    await first.end();
    await secondWaits;
  });

  it('lets it go on also before an older one that has not, and never fails it for that', async () => {
    const [older, younger] = [await begin('older'), await begin('younger')];
    await younger.grow(10);
    const olderWaits = older.grow(10);
    expect(await isWaiting(older)).toBe(true);
    await younger.grow(5);
    await younger.end();
    await olderWaits;
  });

  it('ends waiting with the reason of its signal, and those behind it move up', async () => {
    const [holder, first, second] = [await begin('holder'), await begin('first'), await begin('second')];
    await holder.grow(10);
    const cancel = new AbortController();
    const firstWaits = first.grow(10, cancel.signal);
    const secondWaits = second.grow(3);
    expect(await isWaiting(second)).toBe(true);
    cancel.abort(new Error('cancelled'));
    await expect(firstWaits).rejects.toThrow('cancelled');
    await secondWaits;
  });

  it('makes room for the first in the line when all that hold something wait: the last that came fails', async () => {
    const [first, second] = [await begin('first'), await begin('second')];
    await first.grow(7);
    await second.grow(7);
    await Promise.all([first.write(7), second.write(7)]);
    const secondWaits = second.grow(7);
    expect(await isWaiting(second)).toBe(true);
    const firstWaits = first.grow(7);
    await expect(secondWaits).rejects.toThrow(OUT_OF_SPACE);
    await second.end();
    await firstWaits;
  });

  it('that only waits for something else makes room too, and one that works does not', async () => {
    const [first, parked] = [await begin('first'), await begin('parked')];
    await first.grow(7);
    await parked.grow(7);
    let seen: AbortSignal | undefined;
    const slot = parked.claim.idle(never, (signal) => {
      seen = signal;
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    });
    expect(seen?.aborted).toBe(false);
    const firstWaits = first.grow(7);
    await expect(slot).rejects.toThrow(OUT_OF_SPACE);
    await parked.end();
    await firstWaits;
  });

  it('is granted when somebody outside frees space', async () => {
    await volume.fillUpTo(10 * MIB);
    const [first, second] = [await begin('first'), await begin('second')];
    await first.grow(2);
    const waiting = second.grow(8);
    expect(await isWaiting(second)).toBe(true);
    await volume.empty();
    await waiting;
  });
});

describe('a claim that does not wait', () => {
  it('is made at once or not at all, and shrinks with what has been written', async () => {
    let written = 0;
    const claim = await space.tryClaim(12 * MIB, () => written);
    expect(claim).toBeDefined();
    expect(await space.tryClaim(5 * MIB, () => 0)).toBeUndefined();
    await writeFile(join(volume.folder, 'upload'), Buffer.alloc(12 * MIB));
    written = 12 * MIB;
    expect(await space.tryClaim(3 * MIB, () => 0)).toBeDefined();
    expect(await space.tryClaim(3 * MIB, () => 0)).toBeUndefined();
  });

  it('of nothing is refused when the reserve is touched', async () => {
    expect(await space.isLow()).toBe(false);
    await volume.fillUpTo(RESERVE - MIB);
    expect(await space.isLow()).toBe(true);
    expect(await space.tryClaim(0, () => 0)).toBeUndefined();
    await volume.empty();
    expect(await space.isLow()).toBe(false);
    expect(await space.tryClaim(0, () => 0)).toBeDefined();
  });
});

describe('the reserve', () => {
  it('is 5 % of a small volume when none is set', async () => {
    const unset = new DiskSpace(volume.folder);
    await volume.fillUpTo(1.1 * MIB);
    expect(await unset.isLow()).toBe(false);
    await volume.fillUpTo(0.9 * MIB);
    expect(await unset.isLow()).toBe(true);
  });

  it('has to be exceeded by a tenth before enough is free again', async () => {
    await volume.fillUpTo(1.05 * RESERVE);
    expect(await space.isLow()).toBe(false);
    expect(await space.isLow(true)).toBe(true);
    await volume.fillUpTo(1.15 * RESERVE);
    expect(await space.isLow(true)).toBe(false);
  });

  it('of 0 lets everything through', async () => {
    const off = new DiskSpace(volume.folder, 0);
    await volume.fillUpTo(0);
    expect(await off.isLow()).toBe(false);
    expect(await off.tryClaim(100 * MIB, () => 0)).toBeDefined();
    await off.open().grow(100 * MIB, never);
  });
});

it(
  'a volume that hangs under the files of a claim fails one in time that does not fit beside all that was claimed',
  unless(whyNoHangingVolumes()),
  async () => {
    const folder = join(volume.folder, 'job');
    await mkdir(folder);
    const claim = space.open();
    claim.countIn(folder);
    await claim.grow(MIB, never);
    const letGo = hangVolume(folder);
    try {
      await expect(space.tryClaim(1024 * MIB, () => 0)).rejects.toThrow(StorageLate);
      // Where there is room, nobody looks.
      (await space.tryClaim(1, () => 0))?.release();
    } finally {
      letGo();
      claim.release();
    }
  },
);
