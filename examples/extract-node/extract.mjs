/**
 * Extracts the audio from a file or URL with Soundpost's client:
 *
 *   API=http://127.0.0.1:8080 KEY=sp_… node extract.mjs <file or URL> [format, default mp3]
 */
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createClient, SoundpostError } from 'soundpost-client';

const [source = '', format = 'mp3'] = process.argv.slice(2);
const soundpost = createClient({ baseUrl: process.env.API ?? '', apiKey: process.env.KEY ?? '' });

try {
  const { jobId } = await soundpost.extract(
    /^https?:/.test(source)
      ? { source: { type: 'url', url: source }, output: { format } }
      : { file: source, output: { format } },
  );
  const { outputFile } = await soundpost.waitFor(jobId, {
    onProgress: ({ progress, currentStep }) => process.stderr.write(`${progress} % ${currentStep ?? ''}\n`),
  });
  const { body } = await soundpost.download(jobId);
  await pipeline(Readable.fromWeb(body), createWriteStream(outputFile.filename));
  process.stdout.write(`${outputFile.filename}, ${outputFile.size} bytes, ${outputFile.duration} s\n`);
} catch (error) {
  if (!(error instanceof SoundpostError)) {
    throw error;
  }
  // docs/reference/errors.md says what to do about each code.
  process.stderr.write(`${error.code}: ${error.message}\n`);
  process.exitCode = 1;
}
