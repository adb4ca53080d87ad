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
      'Extracts the audio from videos, alone or as a service, and posts it into a chat as a voice message',
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
All of it: docs/reference/command-line.md`,
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
    .description('take the audio out of a video')
    .argument('<video>', 'a file, an http(s) address, or - for standard input')
    .addOption(
      new Option(
        '-f, --format <format>',
        'what to make; default: by the extension of -o, else mp3. probe makes no file and prints what is in the video',
      ).choices([...Object.keys(formats), 'probe']),
    )
    .addOption(
      new Option(
        '-q, --quality <quality>',
        'default: high, except that audio which needs no decoding is copied',
      ).choices([...qualities]),
    )
    .option(
      '-H, --header <"Name: value">',
      'send it with an address, to its scheme, host and port alone; 10 at most',
      (value: string, before: readonly string[] = []) => [...before, value],
    )
    .option('-b, --bitrate <rate>', 'such as 192k, instead of a quality')
    .option('--no-copy', 'encode also what could be copied as it is')
    .option('-n, --normalize', 'bring the loudness to -16 LUFS')
    .option('--loudness <LUFS>', 'bring it to another one, -36 to -6')
    .option('-t, --track <track>', 'an index from 0 or a language, such as en; default: the default track')
    .option('--start <time>', 'where to begin: 10, 10.5, 1:10 or 0:01:10')
    .option('--end <time>', 'where to end, counted from the beginning of the video')
    .addOption(
      new Option(
        '--timeline <clock>',
        'source keeps the seconds of the video, audio closes gaps; default: source, of voice audio',
      ).choices([...timelines]),
    )
    .option('--trim-silence', 'shorten pauses above 1 s to 0.5 s; implies --timeline audio')
    .option('--accept-truncated', 'take what is there of a file that was cut off')
    .option('--channels <count>', '1 or 2; default: as the video, at most 2')
    .option('--channel <channel>', 'one channel alone, as mono: left, right or an index from 0')
    .option('--sample-rate <Hz>', 'default: as the video, or the nearest that the format takes')
    .option('--no-metadata', 'leave tags, chapters and cover art out')
    .option(
      '--also <NAME=FORMAT,…>',
      'make one more file of it, such as peaks=waveform or preview=opus,end=30; 31 at most',
      (value: string, before: readonly string[] = []) => [...before, value],
    )
    .option(
      '--transcript <path>',
      'write what is said as well: a file that ends in .vtt, .srt, .json or .txt; needs TRANSCRIBER_URL, or a service that has it',
    )
    .option('--language <code>', 'what is spoken, such as en; default: the transcriber finds out')
    .option('-o, --output <path>', 'a file, a folder, or - for standard output; default: beside you')
    .option('-y, --force', 'overwrite a file that is there already')
    .option('--name <name>', 'what the audio is called, without extension; default: as the video')
    .option(
      '--send <INSTANCE:NUMBER>',
      'send it as a voice message; without -o and --also no file is written',
    )
    .option('--delay <ms>', 'show as recording for so long before the voice message')
    .option('--webhook <url>', 'of a service: the address that is told of the end')
    .option(
      '--destination <url>',
      'of a service: an address that takes a PUT, such as a presigned one; without -o no file is written',
    )
    .addOption(
      new Option('--priority <priority>', 'of a service: default normal').choices(['low', 'normal', 'high']),
    )
    .option('--server <url>', 'let a service do it; default: SOUNDPOST_SERVER, else this machine alone')
    .option('--json', 'print the result as JSON')
    .option('--quiet', 'no progress')
    .action((video: string, choices: Parameters<typeof extractRequest>[0]) =>
      import('./extract.ts').then(({ extract }) => extract(video, choices, say, streams)),
    );
}

function addKeys(program: Command, { say, complain }: Terminal): void {
  const keys = program.command('keys').description('API keys of the service of this machine');
  keys
    .command('create')
    .description('make a key and print it; it is not shown again')
    .requiredOption('--name <name>', 'what the key is for')
    .option('--scopes <list>', 'comma-separated; default: all but admin')
    .option('--instances <list>', 'gateway instances that it may send as, * for any; default: none')
    .option('--json', 'print JSON')
    .action(async (choices: Parameters<typeof createKey>[0]) =>
      say(await (await import('./keys.ts')).createKey(choices, complain)),
    );
  keys
    .command('list')
    .description('show the keys, without their secrets')
    .option('--json', 'print JSON')
    .action(async ({ json = false }: { json?: boolean }) =>
      say(await (await import('./keys.ts')).listKeys(json)),
    );
  keys
    .command('revoke')
    .argument('<id>')
    .description('make a key useless at once')
    .action(async (id: string) => say(await (await import('./keys.ts')).revokeKey(id)));
  keys
    .command('pause')
    .argument('<id>')
    .description('let none of its jobs begin, and take none of it; what runs goes on')
    .action(async (id: string) => say(await (await import('./keys.ts')).pauseKey(id)));
  keys
    .command('stop')
    .argument('<id>')
    .description('pause a key, and cancel those of its jobs that run')
    .action(async (id: string) => say(await (await import('./keys.ts')).pauseKey(id, true)));
  keys
    .command('resume')
    .argument('<id>')
    .description('let a paused key go on')
    .action(async (id: string) => say(await (await import('./keys.ts')).resumeKey(id)));
  keys
    .command('rotate')
    .argument('<id>')
    .description('give a key a new secret; the old one works a day more')
    .action(async (id: string) => say(await (await import('./keys.ts')).rotateKey(id)));
  keys
    .command('gateway')
    .description('print the own key of the messaging gateway, which the console asks for')
    .action(async () => say(await (await import('./gateway-key.ts')).gatewayKey()));
}

function addAcceptSecret(program: Command, { say }: Terminal): void {
  program
    .command('accept-secret')
    .description(
      'go on with another SECRET_KEY than Redis knows, when the old one is lost; nothing that was made with the old one works again',
    )
    .action(async () => say(await (await import('./keys.ts')).acceptSecret()));
}

function addServers(program: Command, { say }: Terminal): void {
  adopting(
    program
      .command('serve')
      .description('run everything on this machine: API, gateway, worker and, without REDIS_URL, a Redis'),
  ).action(async (choices: Adopting) => (await import('./serve.ts')).serve(say, choices));
  adopting(program.command('api').description('run the API alone')).action(async (choices: Adopting) =>
    (await import('./serve.ts')).serveApi(say, choices),
  );
  adopting(program.command('worker').description('run a worker alone')).action(async (choices: Adopting) =>
    (await import('./serve.ts')).serveWorker(say, choices),
  );
  program
    .command('gateway')
    .description('run the messaging gateway alone')
    .action(async () => (await import('./serve.ts')).serveGateway(say));
}

interface Adopting {
  readonly adopt?: boolean;
}

function adopting(command: Command): Command {
  return command.option(
    '--adopt',
    'take Redis and the results as they are, once, though they do not belong together; default: ADOPT',
  );
}

function addDoctor(program: Command, { say, streams = process, end = exitWith }: Terminal): void {
  program
    .command('doctor')
    .description(
      'check this machine for what Soundpost needs, and say how to fix what is missing; changes nothing',
    )
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
