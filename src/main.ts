#!/usr/bin/env node
/** The command line. Exit codes (decisions E): 0 done, 1 the work failed, 2 wrong usage or configuration, 130 interrupted. */
import { Command, CommanderError } from 'commander';
import type { DoctorChoices } from './commands/doctor.ts';
import { createKey, type KeyChoices, listKeys, revokeKey, rotateKey, UsageError } from './commands/keys.ts';
import { serve, serveApi, serveGateway, serveWorker } from './commands/serve.ts';
import { ConfigurationError } from './config.ts';
import { ApiKeyConflict } from './queue/api-keys.ts';

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const complain = (sentence: string): void => {
  process.stderr.write(`soundpost: ${sentence}\n`);
};

const program = new Command('soundpost')
  .description('Extracts the audio from videos as a service and posts it into a chat as a voice message')
  .exitOverride();

program
  .command('serve')
  .description('run everything on this machine: API, gateway, worker and, without REDIS_URL, a Redis')
  .action(() => serve(say));
program
  .command('api')
  .description('run the API alone')
  .action(() => serveApi(say));
program
  .command('worker')
  .description('run a worker alone')
  .action(() => serveWorker(say));
program
  .command('gateway')
  .description('run the messaging gateway alone')
  .action(() => serveGateway(say));

const keys = program.command('keys').description('API keys');
keys
  .command('create')
  .description('make a key and print it; it is not shown again')
  .requiredOption('--name <name>', 'what the key is for')
  .option('--scopes <list>', 'comma-separated; default: all')
  .option('--instances <list>', 'gateway instances that it may send as, * for any; default: none')
  .option('--json', 'print JSON')
  .action(async (choices: KeyChoices) => say(await createKey(choices, complain)));
keys
  .command('list')
  .description('show the keys, without their secrets')
  .option('--json', 'print JSON')
  .action(async ({ json = false }: { json?: boolean }) => say(await listKeys(json)));
keys
  .command('revoke')
  .argument('<id>')
  .description('make a key useless at once')
  .action(async (id: string) => say(await revokeKey(id)));
keys
  .command('rotate')
  .argument('<id>')
  .description('give a key a new secret; the old one works a day more')
  .action(async (id: string) => say(await rotateKey(id)));

program
  .command('doctor')
  .description('check what Soundpost needs on this machine, and say what mends it; changes nothing')
  .option('--json', 'print JSON')
  .action(async (choices: DoctorChoices) => {
    const { doctor } = await import('./commands/doctor.ts');
    process.exitCode = await doctor(choices, say);
  });

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
  if (!(error instanceof CommanderError)) {
    complain(error instanceof Error ? error.message : String(error));
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? 0 : 2;
  }
  const wrongUsage = [UsageError, ConfigurationError, ApiKeyConflict].some((kind) => error instanceof kind);
  return wrongUsage ? 2 : 1;
}
