/** The service that a command uses, and its key there. */
import { createClient, type SoundpostClient } from 'soundpost-client/client';
import { type Config, loadConfig } from '../process/config.ts';
import { UsageError } from './ending.ts';

interface ServerChoice {
  /** `--server` */
  readonly server?: string | undefined;
}

export interface Server {
  /** Base address without trailing slash. */
  readonly url: string;
  readonly apiKey: string;
  readonly client: SoundpostClient;
}

/** As named by the option or SOUNDPOST_SERVER; undefined without either. Throws a UsageError. */
export function namedServer({ server }: ServerChoice, config: Config): Server | undefined {
  const url = server ?? config.SOUNDPOST_SERVER;
  return url === undefined ? undefined : connect(url, config);
}

/** The named one, or the local one with the same configuration. Throws a UsageError. */
export function anyServer(choice: ServerChoice, config: Config = loadConfig()): Server {
  return namedServer(choice, config) ?? connect(`http://127.0.0.1:${config.API_PORT}`, config);
}

function connect(given: string, config: Config): Server {
  const address = URL.parse(given);
  if (address === null || !/^https?:$/.test(address.protocol)) {
    throw new UsageError(`--server: "${given}" is not a URL such as http://127.0.0.1:8080`);
  }
  if (address.username !== '' || address.password !== '') {
    throw new UsageError(
      `--server: leave the name and password out of the URL, ${address.origin}${address.pathname}; put the key in SOUNDPOST_API_KEY`,
    );
  }
  const apiKey = config.SOUNDPOST_API_KEY ?? config.BOOTSTRAP_API_KEY;
  if (apiKey === undefined) {
    throw new UsageError(
      `${given} needs a key: set SOUNDPOST_API_KEY; create one with "soundpost keys create --name me" on the service's machine`,
    );
  }
  const url = given.replace(/\/+$/, '');
  return { url, apiKey, client: createClient({ baseUrl: url, apiKey }) };
}
