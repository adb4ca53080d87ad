/** On which hosts the parts of a stand run: on this one, unless a scenario makes others (test/hosts). */

interface Host {
  /** What a command begins with, to run there. */
  readonly prefix: readonly string[];
  /** Where this process reaches it. */
  readonly address: string;
}

export interface Hosts {
  /** Where the stand's own servers are reached: videos, webhooks, the recorder before the gateway. */
  readonly world: string;
  /** With Redis. */
  readonly api: Host;
  /** With the gateway. */
  readonly workers: Host;
  /** Where the workers reach the API and Redis. */
  readonly apiFromWorkers: string;
}

const here: Host = { prefix: [], address: '127.0.0.1' };
export const oneHost: Hosts = { world: '127.0.0.1', api: here, workers: here, apiFromWorkers: '127.0.0.1' };
