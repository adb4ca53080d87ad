/** What is about to be submitted, as commands for a shell; the key stays out of them. */
import { MAX_BATCH_JOBS } from 'soundpost-contract/job-request';
import { reachable } from '../../session.ts';
import type { Wanted } from './choices.ts';
import { isReady, type Source, sourceOfJob } from './sources.ts';

/** A file that has not arrived is sent along by the command itself, from where it lies in the shell's folder. */
export function curlOf(list: readonly Source[], wanted: Wanted): string {
  const ready = list.filter(isReady).map((source) => ({ source: sourceOfJob(source), ...wanted }));
  const files = list.filter((source) => !isReady(source) && source.file !== undefined);
  const [only] = ready;
  const bySource =
    ready.length === 1 && only !== undefined
      ? [postCommand('/v1/extract', only)]
      : groups(ready).map((jobs) => postCommand('/v1/batch', { jobs }));
  return [...bySource, ...files.map(({ name }) => form(name, wanted))].join('\n\n');
}

const KEY = '-H "X-API-Key: $SOUNDPOST_KEY"';

/** @param path of the API @param body that is sent as JSON */
export const postCommand = (path: string, body: unknown): string =>
  [
    `curl -X POST ${quoted(reachable(path))}`,
    KEY,
    "-H 'Content-Type: application/json'",
    `-d ${quoted(JSON.stringify(body, null, 2))}`,
  ].join(' \\\n  ');

const form = (name: string, wanted: Wanted): string =>
  [
    `curl -X POST ${quoted(reachable('/v1/extract'))}`,
    KEY,
    `--form-string ${quoted(`request=${JSON.stringify(wanted)}`)}`,
    // Inside the double quotes of curl's own, for names with a comma or a semicolon.
    `-F ${quoted(`file=@"${name.replaceAll(/["\\]/g, '\\$&')}"`)}`,
  ].join(' \\\n  ');

/** For a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function groups<Item>(items: readonly Item[]): Item[][] {
  return Array.from({ length: Math.ceil(items.length / MAX_BATCH_JOBS) }, (_, index) =>
    items.slice(index * MAX_BATCH_JOBS, (index + 1) * MAX_BATCH_JOBS),
  );
}
