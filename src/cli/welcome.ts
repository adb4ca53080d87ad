/** What `serve` prints when ready: addresses, and a shell line that makes an MP3 of a video. */
import { existsSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shellWord } from './terminal-text.ts';

interface Serving {
  readonly apiPort: number;
  readonly gatewayUrl: string;
  /** Opens the inbox once. */
  readonly inboxLink: string;
  /** The key of the very first start; not shown again. */
  readonly newKey: string | undefined;
}

/** A few seconds of speech, in a checkout and the npm package but not in the image. */
const SAMPLE = fileURLToPath(new URL('../../examples/sample.mp4', import.meta.url));
/** How to call this command line, in the package or in a checkout. */
const SELF = extname(import.meta.filename) === '.js' ? 'npx soundpost' : 'script/soundpost';

export function welcome({ apiPort, gatewayUrl, inboxLink, newKey }: Serving): string[] {
  const api = `http://127.0.0.1:${apiPort}`;
  const sample = existsSync(SAMPLE) ? SAMPLE : undefined;
  const what = sample === undefined ? 'video.mp4, which you put there' : 'a sample';
  return [
    `Console  ${api}/`,
    `API      ${api}`,
    `Docs     ${api}/docs`,
    `Gateway  ${gatewayUrl}`,
    `Inbox    ${inboxLink} (one use, within 10 minutes)`,
    newKey === undefined
      ? `API key  is shown on the first start only; another: ${SELF} keys create --name mine`
      : `API key  ${newKey} (shown this once)`,
    '',
    newKey === undefined
      ? `In another terminal, with the key in SOUNDPOST_API_KEY, this makes an MP3 of ${what}:`
      : `In another terminal this makes an MP3 of ${what}:`,
    firstExtraction(api, newKey ?? '$SOUNDPOST_API_KEY', sample),
  ];
}

/** A POSIX shell line that submits the video, follows the job and downloads the result. */
function firstExtraction(api: string, key: string, sample: string | undefined): string {
  const header = '-H "X-API-Key: $KEY"';
  const request = `'request={"output":{"format":"mp3"}}'`;
  const jobId = `sed -n 's/.*"jobId":"\\([^"]*\\)".*/\\1/p'`;
  const output = sample === undefined ? 'video.mp3' : 'sample.mp3';
  return [
    `KEY=${key}`,
    `ANSWER=$(curl -sS --retry 5 ${api}/v1/extract ${header} -F ${shellWord(`file=@${sample ?? 'video.mp4'}`)} -F ${request})`,
    // Printed so that errors are visible.
    `printf '%s\\n' "$ANSWER"`,
    `JOB=$(printf %s "$ANSWER" | ${jobId})`,
    // Server-Sent Events, which end with the job.
    `curl -sSN ${api}/v1/jobs/\${JOB:?was not made}/events ${header}`,
    `curl -sSf -o ${output} ${api}/v1/download/$JOB ${header} && ls -l ${output}`,
  ].join('; ');
}
