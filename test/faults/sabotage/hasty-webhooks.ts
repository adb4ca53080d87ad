/** Sabotage of a worker: it does not hear of Retry-After, and gives each try at a webhook another id. */
import { createRequire, syncBuiltinESMExports } from 'node:module';

const http: typeof import('node:http') = createRequire(import.meta.url)('node:http');
const { request } = http;
let tries = 0;
http.request = ((options: { headers?: Record<string, string> }, ...more: []) => {
  const id = options.headers?.['webhook-id'];
  if (options.headers && id !== undefined) options.headers['webhook-id'] = `${id}-${tries++}`;
  return request(options, ...more).prependListener('response', ({ headers }) => {
    delete headers['retry-after'];
  });
}) as typeof request;
syncBuiltinESMExports();
