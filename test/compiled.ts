/** Where Node keeps what it compiled of the service: it halves what a start costs, as script/env.sh has it, and tests start hundreds of processes. */
import { join } from 'node:path';

export const compiled = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, '..', 'node_modules', '.cache', 'compiled'),
};
