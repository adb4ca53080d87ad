/** Sabotage of a worker: it sends to the gateway without the key that makes a repetition safe. */
import { createRequire } from 'node:module';

// The worker's client takes fetch from the package when it is loaded, which is after this.
const undici: typeof import('undici') = createRequire(import.meta.url)('undici');
const send = undici.fetch;
Object.assign(undici, {
  fetch: ((address, init) => {
    const headers = new undici.Headers(init?.headers);
    headers.delete('idempotency-key');
    return send(address, { ...init, headers });
  }) satisfies typeof undici.fetch,
});
