/** Runs a job over one source, then over another, and prints by how many MiB the second took more memory than the first. A process of its own, for a peak is forgotten by none. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inputFolder } from './inputs.ts';
import { openJobBench } from './jobs.ts';

const [outputs = '[]', warmUp = '', source = ''] = process.argv.slice(2);

/** The most memory that this process has ever had, MiB. */
const peak = (): number =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024;

const bench = await openJobBench({ encodings: 1 });
async function peakAfter(name: string): Promise<number> {
  const upload = await bench.upload(join(inputFolder, name));
  await bench.discard(await bench.run({ upload }, JSON.parse(outputs)));
  return peak();
}
const before = await peakAfter(warmUp);
process.stdout.write(String((await peakAfter(source)) - before));
await bench.close();
