/** The commands for a service's work: `jobs` and `deliveries`. */
import { type Command, Option } from 'commander';
import { JobStatus } from 'soundpost-contract/job';
import type { listDeliveries, replayDelivery, resendDeliveries } from './deliveries.ts';
import type { downloadJob, listJobs, OnServer } from './jobs.ts';
import type { Streams } from './streams.ts';

/** How a command communicates. */
interface Terminal {
  /** A line on standard output. */
  say(line: string): void;
  /** A line on standard error. */
  complain(sentence: string): void;
  /** Default: the process's. */
  readonly streams?: Streams;
  /** Gets the exit code of a successful command that has one. Default: the process's. */
  end?(code: number): void;
}

export function addJobs(program: Command, { say, streams = process }: Terminal): void {
  const jobs = program.command('jobs').description('the jobs of your key, at a service');
  onServer(jobs.command('list').description('show the newest jobs'))
    .addOption(new Option('--status <status>', 'only those in this state').choices(JobStatus.options))
    .option('--search <text>', 'only those whose id, address or name contains this')
    .option('--limit <count>', 'how many at most', '20')
    .action(async (choices: Parameters<typeof listJobs>[0]) =>
      say(await (await import('./jobs.ts')).listJobs(choices)),
    );
  onServer(jobs.command('show').description('show one job').argument('<jobId>')).action(
    async (jobId: string, choices: OnServer) =>
      say(await (await import('./jobs.ts')).showJob(jobId, choices)),
  );
  onServer(
    jobs
      .command('watch')
      .description('follow a job to its end; Ctrl-C ends the watching alone')
      .argument('<jobId>'),
  ).action(async (jobId: string, choices: OnServer) =>
    say(await (await import('./jobs.ts')).watchJob(jobId, choices, streams)),
  );
  onServer(
    jobs
      .command('download')
      .description('fetch the audio of a job, once it is completed')
      .argument('<jobId>'),
  )
    .option('--name <name>', 'of several outputs, the one that is wanted; default: the first')
    .option('-o, --output <path>', 'a file, a folder, or - for standard output; default: beside you')
    .option('-y, --force', 'overwrite a file that is there already')
    .action(async (jobId: string, choices: Parameters<typeof downloadJob>[1]) => {
      const line = await (await import('./jobs.ts')).downloadJob(jobId, choices, streams);
      if (line !== undefined) say(line);
    });
  onServer(
    jobs
      .command('cancel')
      .description('end an unfinished job, or erase the files of a finished one')
      .argument('<jobId>'),
  ).action(async (jobId: string, choices: OnServer) =>
    say(await (await import('./jobs.ts')).cancelJob(jobId, choices)),
  );
  onServer(
    jobs.command('retry').description('try a failed job again, as a new job').argument('<jobId>'),
  ).action(async (jobId: string, choices: OnServer) =>
    say(await (await import('./jobs.ts')).retryJob(jobId, choices)),
  );
}

export function addDeliveries(program: Command, { say }: Terminal): void {
  const deliveries = program
    .command('deliveries')
    .description('what follows your jobs, at a service: webhooks, voice messages, transcripts, puts');
  onServer(deliveries.command('list').description('show the deliveries of a job, or of the newest jobs'))
    .argument('[jobId]')
    .addOption(
      new Option('--status <status>', 'only those in this state').choices(['pending', 'delivered', 'failed']),
    )
    .option('--limit <jobs>', 'without a job: how many of the newest are looked at', '20')
    .action(async (jobId: string | undefined, choices: Parameters<typeof listDeliveries>[1]) =>
      say(await (await import('./deliveries.ts')).listDeliveries(jobId, choices)),
    );
  onServer(
    deliveries.command('show').description('show a delivery with its attempts').argument('<deliveryId>'),
  ).action(async (id: string, choices: OnServer) =>
    say(await (await import('./deliveries.ts')).showDelivery(id, choices)),
  );
  onServer(
    deliveries
      .command('replay')
      .description('send a webhook again under the same webhook-id, or put a file to its destination again')
      .argument('<deliveryId>')
      .option('--url <address>', 'of a destination: a new address'),
  ).action(async (id: string, choices: Parameters<typeof replayDelivery>[1]) =>
    say(await (await import('./deliveries.ts')).replayDelivery(id, choices)),
  );
  onServer(
    deliveries
      .command('resend')
      .description('send all webhooks again that failed since a time')
      .requiredOption('--since <time>', 'such as 2026-11-23T14:00Z; without a zone: local time'),
  ).action(async (choices: Parameters<typeof resendDeliveries>[0]) =>
    say(await (await import('./deliveries.ts')).resendDeliveries(choices)),
  );
}

function onServer(command: Command): Command {
  return command
    .option('--server <url>', 'the service; default: SOUNDPOST_SERVER, else http://127.0.0.1:$API_PORT')
    .option('--json', 'print JSON');
}
