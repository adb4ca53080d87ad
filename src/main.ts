/** The command line: what belongs to the process alone. */
import { run } from './cli/run.ts';

/** What standard output failed with, which is told already. */
let broken: unknown;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exitCode ??= 1;
  // A reader that has enough, such as head, is no fault of anybody.
  if (error.code === 'EPIPE' || broken !== undefined) return;
  broken = error;
  process.stderr.write(`soundpost: standard output cannot be written: ${error.message}\n`);
});
// Nobody is left to be told. What a terminal that went away means for the work is SIGHUP's to say.
process.stderr.on('error', () => undefined);

const exitCode = await run(process.argv.slice(2), process, (error) => error === broken);
// What standard output failed with meanwhile stands.
if (exitCode !== 0) process.exitCode = exitCode;
