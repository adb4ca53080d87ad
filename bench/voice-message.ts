/**
 * A voice message beside the output against the output alone: on one core in one decode, and on two idle cores at the same time, where a long
 * output alone is encoded in parts.
 *
 *     node bench/voice-message.ts [--minutes 10] [--shortMinutes 4] [--runs 5]
 */
import { join } from 'node:path';
import { askedFor, inTurns, printRow } from './measuring/comparison.ts';
import { inputFolder, videoOf } from './measuring/inputs.ts';
import { openJobBench } from './measuring/jobs.ts';

const { minutes, shortMinutes, runs } = askedFor({ minutes: 10, shortMinutes: 4, runs: 5 });
const voiceMessage = { instance: 'bench', number: '12025550101' };

const CORES = { 1: 'one core', 2: 'two idle cores' } as const;

async function compare(encodings: keyof typeof CORES, ofMinutes: number): Promise<void> {
  const bench = await openJobBench({ encodings });
  const upload = await bench.upload(join(inputFolder, await videoOf(ofMinutes)));
  const seconds = async (options: object): Promise<number> => {
    const begunAt = performance.now();
    const result = await bench.run({ upload }, { format: 'mp3', bitrate: '192k' }, options);
    const took = (performance.now() - begunAt) / 1000;
    if ((result.voice !== null) !== 'voiceMessage' in options)
      throw new Error('not the files that were asked for');
    await bench.discard(result);
    return took;
  };
  printRow({
    what: `mp3 192k and a voice message, ${ofMinutes} min, ${CORES[encodings]}`,
    against: 'mp3 192k alone',
    unit: 's',
    ...(await inTurns(
      runs,
      () => seconds({ voiceMessage }),
      () => seconds({}),
    )),
    reach: { atMost: 1.5 },
  });
  await bench.close();
}

await compare(1, minutes);
await compare(2, minutes);
await compare(2, shortMinutes);
