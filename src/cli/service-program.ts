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
  const jobs = program.command('jobs').description('manage your jobs on a service');
  onServer(jobs.command('list').description('list your newest jobs'))
    .addOption(new Option('--status <status>', 'only this state').choices(JobStatus.options))
    .option('--search <text>', 'only jobs whose id, URL or name contains this text')
    .option('--limit <count>', 'at most this many', '20')
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
      .description('follow a job until it ends; Ctrl-C stops watching, not the job')
      .argument('<jobId>'),
  ).action(async (jobId: string, choices: OnServer) =>
    say(await (await import('./jobs.ts')).watchJob(jobId, choices, streams)),
  );
  onServer(jobs.command('download').description('download the audio of a completed job').argument('<jobId>'))
    .option('--name <name>', 'output to download, if there are several; default: the first')
    .option('-o, --output <path>', 'a file, a folder, or - for standard output; default: the current folder')
    .option('-y, --force', 'overwrite existing files')
    .action(async (jobId: string, choices: Parameters<typeof downloadJob>[1]) => {
      const line = await (await import('./jobs.ts')).downloadJob(jobId, choices, streams);
      if (line !== undefined) say(line);
    });
  onServer(
    jobs
      .command('cancel')
      .description('cancel an unfinished job, or delete the files of a finished one')
      .argument('<jobId>'),
  ).action(async (jobId: string, choices: OnServer) =>
    say(await (await import('./jobs.ts')).cancelJob(jobId, choices)),
  );
  onServer(jobs.command('retry').description('retry a failed job as a new job').argument('<jobId>')).action(
    async (jobId: string, choices: OnServer) =>
      say(await (await import('./jobs.ts')).retryJob(jobId, choices)),
  );
}

export function addDeliveries(program: Command, { say }: Terminal): void {
  const deliveries = program
    .command('deliveries')
    .description('manage deliveries on a service: webhooks, voice messages, transcripts, destinations');
  onServer(deliveries.command('list').description('list the deliveries of a job, or of your newest jobs'))
    .argument('[jobId]')
    .addOption(new Option('--status <status>', 'only this state').choices(['pending', 'delivered', 'failed']))
    .option('--limit <jobs>', 'without a job: check this many of the newest jobs', '20')
    .action(async (jobId: string | undefined, choices: Parameters<typeof listDeliveries>[1]) =>
      say(await (await import('./deliveries.ts')).listDeliveries(jobId, choices)),
    );
  onServer(
    deliveries.command('show').description('show a delivery and its attempts').argument('<deliveryId>'),
  ).action(async (id: string, choices: OnServer) =>
    say(await (await import('./deliveries.ts')).showDelivery(id, choices)),
  );
  onServer(
    deliveries
      .command('replay')
      .description('resend a webhook with the same webhook-id, or upload a file to its destination again')
      .argument('<deliveryId>')
      .option('--url <url>', 'for a destination: upload to this URL instead'),
  ).action(async (id: string, choices: Parameters<typeof replayDelivery>[1]) =>
    say(await (await import('./deliveries.ts')).replayDelivery(id, choices)),
  );
  onServer(
    deliveries
      .command('resend')
      .description('resend all webhooks that failed since a time')
      .requiredOption('--since <time>', 'such as 2026-11-23T14:00Z; local time without a zone'),
  ).action(async (choices: Parameters<typeof resendDeliveries>[0]) =>
    say(await (await import('./deliveries.ts')).resendDeliveries(choices)),
  );
}

function onServer(command: Command): Command {
  return command
    .option(
      '--server <url>',
      'URL of the service; default: SOUNDPOST_SERVER, else http://127.0.0.1:$API_PORT',
    )
    .option('--json', 'print JSON');
}
