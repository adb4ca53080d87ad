/** How each command is called, as its help shows it; test/cli/help.test.ts holds them to the commands. */
import type { Command } from 'commander';

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
  'deliveries replay': [`soundpost deliveries replay ${JOB}-webhook`],
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

/** Adds to the help of every command that does something what there is of it. */
export function addExamples(command: Command, path: readonly string[] = []): void {
  const lines = examples[path.join(' ')];
  if (lines !== undefined) {
    command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`);
  }
  for (const sub of command.commands) addExamples(sub, [...path, sub.name()]);
}
