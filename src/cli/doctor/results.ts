/** Checks whether Redis and the results belong together, and lists what no record names. */
import type { Redis } from 'soundpost-kit/redis/connection';
import { withDeadline } from 'soundpost-kit/storage/deadline';
import { type Inventory, type Shelf, type Unnamed, unnamedObjects } from 'soundpost-kit/storage/inventory';
import { openStorage } from '../../process/backing-services.ts';
import type { Config } from '../../process/config.ts';
import { lookAtMarks } from '../../process/marks.ts';
import { shelvesOf } from '../../process/shelves.ts';
import { type Finding, messageOf, ok } from './check.ts';

/** Silent if Redis or the storage does not answer, which has its own row. */
export async function checkResults(config: Config, redis: Redis): Promise<Finding[]> {
  const { storage, inventory, place, close } = await openStorage(config);
  try {
    const limited = withDeadline(storage, config.STORAGE_DEADLINE_SECONDS * 1000);
    const state = await lookAtMarks({ redis, storage: limited, place }).catch(() => undefined);
    if (state === undefined) return [];
    return [
      marksFinding(state, place),
      ...(await unnamedFindings(inventory, shelvesOf(config, redis)).catch(notListed)),
    ];
  } finally {
    close();
  }
}

function marksFinding(state: Awaited<ReturnType<typeof lookAtMarks>>, place: string): Finding {
  switch (state.kind) {
    case 'same':
      return ok(`Redis and the files in ${place} belong together`);
    case 'new':
    case 'unfinished':
      return ok(`files will be in ${place}; the first start links them to this Redis`);
    case 'refused':
      return { verdict: 'fault', found: state.problem, remedy: state.remedy };
  }
}

function notListed(error: unknown): Finding[] {
  return [{ verdict: 'warning', found: `the files could not be listed (${messageOf(error)})` }];
}

/** Of each folder, how many are named. */
const SHOWN = 10;
/** A bucket can have millions: what was not looked at by then is not counted. */
const LOOKS_FOR_MS = 20_000;

async function unnamedFindings(inventory: Inventory, shelves: readonly Shelf[]): Promise<Finding[]> {
  const endMs = performance.now() + LOOKS_FOR_MS;
  const findings: Finding[] = [];
  for (const shelf of shelves) {
    const first: Unnamed[] = [];
    let [count, sizeBytes, untilMs] = [0, 0, 0];
    for await (const object of unnamedObjects(inventory, shelf)) {
      if (first.length < SHOWN) first.push(object);
      count += 1;
      sizeBytes += object.sizeBytes;
      untilMs = Math.max(untilMs, object.untilMs);
      if (performance.now() > endMs) break;
    }
    if (count === 0) continue;
    const names = first.map(({ key }) => key).join(', ');
    const more = count > SHOWN ? ` and ${count - SHOWN} more` : '';
    findings.push({
      verdict: 'warning',
      found: `files in ${shelf.folder} without a record: ${count} (${sizeBytes} bytes), ${names}${more}`,
      remedy: `they expire, the last at ${new Date(untilMs).toISOString()}; copy what you still need`,
    });
  }
  return findings;
}
