/** Where things are, as far as it follows from the configuration. */
import { join } from 'node:path';
import type { Config } from '../config.ts';

/** Where answers and webhooks say that the API is. */
export function publicUrlOf({ PUBLIC_URL, API_PORT }: Config, port = API_PORT): string {
  return PUBLIC_URL ?? `http://127.0.0.1:${port}`;
}

/** Where the bytes of unfinished tus uploads gather; the janitor removes them there too. No storage key begins with a dot. */
export function incomingFolder({ DATA_DIR }: Config): string {
  return join(DATA_DIR, 'uploads', '.incoming');
}

/** Where temporary files go, and nowhere else. */
export function workspacesFolder({ DATA_DIR }: Config): string {
  return join(DATA_DIR, 'workspaces');
}
