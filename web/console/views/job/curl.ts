/** The request that makes a job, for a terminal. */
import type { Job } from '../../../../src/contract/job.ts';

/**
 * With the key from `$SOUNDPOST_KEY`. Of the address of a source the service keeps no query, and of a destination nothing that could be used again; both are
 * left out.
 */
export function curlOf({ source, output, outputs, options }: Job): string {
  const body = {
    source,
    ...(output === undefined ? {} : { output: withoutDestination(output) }),
    ...(outputs === undefined ? {} : { outputs: outputs.map(withoutDestination) }),
    ...(Object.keys(options).length === 0 ? {} : { options }),
  };
  return [
    `curl ${quoted(new URL('v1/extract', document.baseURI).href)}`,
    '-H "X-API-Key: $SOUNDPOST_KEY"',
    "-H 'Content-Type: application/json'",
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(' \\\n  ');
}

function withoutDestination<Asked extends { readonly destination?: unknown }>({
  destination: _,
  ...output
}: Asked): Omit<Asked, 'destination'> {
  return output;
}

/** One word of a POSIX shell, whatever is in it. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
