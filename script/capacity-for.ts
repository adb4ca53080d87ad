/**
 * The tables of docs/operations.md "Capacity" for videos of another length:
 *
 *     node script/capacity-for.ts --minutes 0.5
 */
import { join } from 'node:path';
import { askedFor } from '../bench/measuring/comparison.ts';
import { readResults } from '../bench/measuring/results.ts';
import { capacityPage } from './capacity-page.ts';

const { minutes } = askedFor({ minutes: 10 });
const page = capacityPage(readResults(join(import.meta.dirname, '..')), minutes);
process.stdout.write(`${Object.values(page).join('\n\n')}\n`);
