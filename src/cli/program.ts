/** Every command with its options and help. Code loads with its command, so `--help` is fast. */
import { Command, Option } from 'commander';
import { formats, qualities, timelines } from 'soundpost-contract/formats';
import { version } from '../process/config.ts';
import type { doctor } from './doctor.ts';
import type { extractRequest } from './extract-options.ts';
import type { createKey } from './keys.ts';
import { addDeliveries, addJobs } from './service-program.ts';

type Terminal = Parameters<typeof addJobs>[1];

export function createProgram(terminal: Terminal): Command {
  const { streams = process } = terminal;
  const program = new Command('soundpost')
    // Before the commands, which inherit it.
    .configureOutput({
      writeOut: (text) => streams.stdout.write(text),
      writeErr: (text) => streams.stderr.write(text),
    })
    .description(
      'Extract the audio from videos, here or with a service, and send it to a chat as a voice message',
    )
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .exitOverride()
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: false })
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 the work failed, 2 wrong usage or configuration, 130 interrupted.
Reference: docs/reference/command-line.md`,
    );
  addExtract(program, terminal);
  addJobs(program, terminal);
  addDeliveries(program, terminal);
  addKeys(program, terminal);
  addAcceptSecret(program, terminal);
  addServers(program, terminal);
  addDoctor(program, terminal);
  addExamples(program);
  return program;
}

function addExtract(program: Command, { say, streams = process }: Terminal): void {
  program
    .command('extract')
    .description('extract the audio from a video')
    .argument('<video>', 'a file, an http(s) URL, or - for standard input')
    .addOption(
      new Option(
        '-f, --format <format>',
        'output format; default: the extension of -o, else mp3. probe prints the audio tracks and writes no file',
      ).choices([...Object.keys(formats), 'probe']),
    )
    .addOption(
      new Option('-q, --quality <quality>', 'default: high; audio that needs no decoding is copied').choices([
        ...qualities,
      ]),
    )
    .option(
      '-H, --header <"Name: value">',
      "send a header with the download, only to the URL's own scheme, host and port; at most 10",
      (value: string, before: readonly string[] = []) => [...before, value],
    )
    .option('-b, --bitrate <rate>', 'instead of a quality, such as 192k')
    .option('--no-copy', 're-encode audio that could be copied')
    .option('-n, --normalize', 'normalize the loudness to -16 LUFS')
    .option('--loudness <LUFS>', 'normalize to another loudness, -36 to -6')
    .option('-t, --track <track>', 'index from 0 or language, such as en; default: the default track')
    .option('--start <time>', 'start at this time: 10, 10.5, 1:10 or 0:01:10')
    .option('--end <time>', 'end at this time of the video')
    .addOption(
      new Option(
        '--timeline <clock>',
        'source keeps the timing of the video, audio removes gaps; default: source, for voice audio',
      ).choices([...timelines]),
    )
    .option('--trim-silence', 'shorten pauses over 1 s to 0.5 s; implies --timeline audio')
    .option('--accept-truncated', 'accept an incomplete file and extract what it has')
    .option('--channels <count>', '1 or 2; default: as in the video, at most 2')
    .option('--channel <channel>', 'extract one channel as mono: left, right or an index from 0')
    .option('--sample-rate <Hz>', 'default: as in the video, or the nearest the format supports')
    .option('--no-metadata', 'drop tags, chapters and cover art')
    .option(
      '--also <NAME=FORMAT,…>',
      'make another file, such as peaks=waveform or preview=opus,end=30; at most 31',
      (value: string, before: readonly string[] = []) => [...before, value],
    )
    .option(
      '--transcript <path>',
      'also write a transcript: a file ending in .vtt, .srt, .json or .txt; needs TRANSCRIBER_URL, or a service that has it',
    )
    .option('--language <code>', 'spoken language, such as en; default: the transcriber detects it')
    .option('-o, --output <path>', 'a file, a folder, or - for standard output; default: the current folder')
    .option('-y, --force', 'overwrite existing files')
    .option('--name <name>', 'file name of the audio, without extension; default: as the video')
    .option(
      '--send <INSTANCE:NUMBER>',
      'send the audio as a voice message; writes no file without -o or --also',
    )
    .option('--delay <ms>', 'show "recording" in the chat for this long before sending')
    .option('--webhook <url>', 'with a service: POST to this URL when the job finishes')
    .option(
      '--destination <url>',
      'with a service: PUT the audio to this URL, such as a presigned one; writes no file without -o',
    )
    .addOption(
      new Option('--priority <priority>', 'with a service; default: normal').choices([
        'low',
        'normal',
        'high',
      ]),
    )
    .option('--server <url>', 'extract with this service; default: SOUNDPOST_SERVER, else on this machine')
    .option('--json', 'print the result as JSON')
    .option('--quiet', 'show no progress')
    .action((video: string, choices: Parameters<typeof extractRequest>[0]) =>
      import('./extract.ts').then(({ extract }) => extract(video, choices, say, streams)),
    );
}

function addKeys(program: Command, { say, complain }: Terminal): void {
  const keys = program.command('keys').description('manage the API keys of the service on this machine');
  keys
    .command('create')
    .description('create a key and print it; it is shown only once')
    .requiredOption('--name <name>', 'name of the key')
    .option('--scopes <list>', 'comma-separated; default: all except admin')
    .option('--instances <list>', 'gateway instances that the key may send from, * for any; default: none')
    .option('--json', 'print JSON')
    .action(async (choices: Parameters<typeof createKey>[0]) =>
      say(await (await import('./keys.ts')).createKey(choices, complain)),
    );
  keys
    .command('list')
    .description('list keys, without their secrets')
    .option('--json', 'print JSON')
    .action(async ({ json = false }: { json?: boolean }) =>
      say(await (await import('./keys.ts')).listKeys(json)),
    );
  keys
    .command('revoke')
    .argument('<id>')
    .description('revoke a key at once')
    .action(async (id: string) => say(await (await import('./keys.ts')).revokeKey(id)));
  keys
    .command('pause')
    .argument('<id>')
    .description('pause a key: reject new jobs, hold queued ones, let running ones finish')
    .action(async (id: string) => say(await (await import('./keys.ts')).pauseKey(id)));
  keys
    .command('stop')
    .argument('<id>')
    .description('pause a key and cancel its running jobs')
    .action(async (id: string) => say(await (await import('./keys.ts')).pauseKey(id, true)));
  keys
    .command('resume')
    .argument('<id>')
    .description('resume a paused key')
    .action(async (id: string) => say(await (await import('./keys.ts')).resumeKey(id)));
  keys
    .command('rotate')
    .argument('<id>')
    .description('give a key a new secret; the old one works for another 24 hours')
    .action(async (id: string) => say(await (await import('./keys.ts')).rotateKey(id)));
  keys
    .command('gateway')
    .description('print the key of the messaging gateway, which the console asks for')
    .action(async () => say(await (await import('./gateway-key.ts')).gatewayKey()));
}

function addAcceptSecret(program: Command, { say }: Terminal): void {
  program
    .command('accept-secret')
    .description(
      'accept a new SECRET_KEY after the old one is lost; keys, tokens and signed URLs made with the old one stop working',
    )
    .action(async () => say(await (await import('./keys.ts')).acceptSecret()));
}

function addServers(program: Command, { say }: Terminal): void {
  adopting(
    program
      .command('serve')
      .description('run everything on this machine: API, worker, gateway and, without REDIS_URL, Redis'),
  ).action(async (choices: Adopting) => (await import('./serve.ts')).serve(say, choices));
  adopting(program.command('api').description('run the API')).action(async (choices: Adopting) =>
    (await import('./serve.ts')).serveApi(say, choices),
  );
  adopting(program.command('worker').description('run a worker')).action(async (choices: Adopting) =>
    (await import('./serve.ts')).serveWorker(say, choices),
  );
  program
    .command('gateway')
    .description('run the messaging gateway')
    .action(async () => (await import('./serve.ts')).serveGateway(say));
}

interface Adopting {
  readonly adopt?: boolean;
}

function adopting(command: Command): Command {
  return command.option(
    '--adopt',
    'start once although Redis and the storage do not match, and keep both; default: ADOPT',
  );
}

function addDoctor(program: Command, { say, streams = process, end = exitWith }: Terminal): void {
  program
    .command('doctor')
    .description('check what Soundpost needs on this machine and print how to fix it; changes nothing')
    .option('--json', 'print JSON')
    .action(async (choices: Parameters<typeof doctor>[0]) => {
      end(await (await import('./doctor.ts')).doctor(choices, say, streams));
    });
}

function exitWith(code: number): void {
  process.exitCode = code;
}

// How to call each command, as shown in its help; test/cli/help.test.ts checks them.

const JOB = 'job_0123456789abcdef';

const examples: Readonly<Record<string, readonly string[]>> = {
  extract: [
    'soundpost extract talk.mp4                              # talk.mp3',
    'soundpost extract talk.mp4 -o talk.flac --track en',
    'soundpost extract https://example.com/talk.mp4 -n --start 1:10 --end 2:00 -o intro.opus',
    'soundpost extract talk.mp4 --also preview=opus,end=30 --also peaks=waveform   # talk-audio.mp3, talk-preview.opus, talk-peaks.json',
    'soundpost extract talk.mp4 -o talk.mp3 --transcript talk.vtt',
    'soundpost extract - -o - < talk.mp4 | ffplay -nodisp -autoexit -',
    'soundpost extract talk.mp4 --json | jq .outputFile.duration',
    'soundpost extract talk.mp4 -f probe                     # its audio tracks, no file',
    'soundpost extract talk.mp4 --server https://audio.example.com --send support:+12025550123',
  ],
  'jobs list': ['soundpost jobs list --status failed', 'soundpost jobs list --limit 500 --json'],
  'jobs show': [`soundpost jobs show ${JOB}`],
  'jobs watch': [`soundpost jobs watch ${JOB} && soundpost jobs download ${JOB}`],
  'jobs download': [
    `soundpost jobs download ${JOB} -o talk.mp3`,
    `soundpost jobs download ${JOB} --name peaks`,
  ],
  'jobs cancel': [`soundpost jobs cancel ${JOB}`],
  'jobs retry': [`soundpost jobs watch "$(soundpost jobs retry ${JOB})"`],
  'deliveries list': ['soundpost deliveries list --status failed', `soundpost deliveries list ${JOB} --json`],
  'deliveries show': [`soundpost deliveries show ${JOB}-webhook`],
  'deliveries replay': [
    `soundpost deliveries replay ${JOB}-webhook`,
    `soundpost deliveries replay ${JOB}-destination-audio --url https://bucket.example/talk.mp3`,
  ],
  'deliveries resend': ['soundpost deliveries resend --since 2026-11-23T14:00Z'],
  'keys create': [
    "soundpost keys create --name newsroom --instances '*'",
    'soundpost keys create --name phone --scopes extract,read,download',
  ],
  'keys list': ['soundpost keys list --json'],
  'keys gateway': ['soundpost keys gateway'],
  'keys pause': ['soundpost keys pause k3x9w2ab'],
  'keys resume': ['soundpost keys resume k3x9w2ab'],
  'keys revoke': ['soundpost keys revoke k3x9w2ab'],
  'keys rotate': ['soundpost keys rotate k3x9w2ab'],
  'keys stop': ['soundpost keys stop k3x9w2ab'],
  'accept-secret': ['SECRET_KEY=… REDIS_URL=redis://10.0.0.5 soundpost accept-secret'],
  serve: ['soundpost serve', 'API_PORT=9090 DATA_DIR=/srv/soundpost soundpost serve'],
  api: ['REDIS_URL=redis://10.0.0.5 SECRET_KEY=… soundpost api'],
  worker: ['REDIS_URL=redis://10.0.0.5 SECRET_KEY=… WORKER_CONCURRENCY=4 soundpost worker'],
  gateway: ['REDIS_URL=redis://10.0.0.5 SECRET_KEY=… soundpost gateway'],
  doctor: ['soundpost doctor', 'soundpost doctor --json | jq .'],
};

/** Adds its examples to the help of each command. */
function addExamples(command: Command, path: readonly string[] = []): void {
  const lines = examples[path.join(' ')];
  if (lines !== undefined) {
    command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`);
  }
  for (const sub of command.commands) addExamples(sub, [...path, sub.name()]);
}
