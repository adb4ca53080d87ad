/**
 * A voice message beside the output, made in the same decode, against the output alone.
 *
 *     node bench/voice-message.ts [--minutes 10] [--runs 5]
 */
import { join } from 'node:path';
import { askedFor, inTurns, printRow } from './measuring/comparison.ts';
import { inputFolder, videoOf } from './measuring/inputs.ts';
import { openJobBench } from './measuring/jobs.ts';

const { minutes, runs } = askedFor({ minutes: 10, runs: 5 });
// A slot for one job: what is compared is the work, not how many cores share it.
const bench = await openJobBench({ encodings: 1 });
const upload = await bench.upload(join(inputFolder, await videoOf(minutes)));
const voiceMessage = { instance: 'bench', number: '12025550101' };

async function seconds(options: object): Promise<number> {
  const begunAt = performance.now();
  const result = await bench.run({ upload }, { format: 'mp3', bitrate: '192k' }, options);
  const took = (performance.now() - begunAt) / 1000;
  if ((result.voice !== null) !== 'voiceMessage' in options)
    throw new Error('not the files that were asked for');
  await bench.discard(result);
  return took;
}

printRow({
  what: `mp3 192k and a voice message, ${minutes} min, one core`,
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
