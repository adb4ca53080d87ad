/** The request that makes a job, for a terminal. */
import type { Job } from 'soundpost-contract/job';
import { postCommand } from '../new/curl.ts';

/**
 * Of the address of a source the service keeps no query, and of a destination nothing that could be used again; both are
 * left out.
 */
export function curlOf({ source, output, outputs, options }: Job): string {
  const body = {
    source,
    ...(output === undefined ? {} : { output: withoutDestination(output) }),
    ...(outputs === undefined ? {} : { outputs: outputs.map(withoutDestination) }),
    ...(Object.keys(options).length === 0 ? {} : { options }),
  };
  return postCommand('/v1/extract', body);
}

function withoutDestination(asked: object): object {
  const { destination: _, ...output } = { destination: undefined, ...asked };
  return output;
}
