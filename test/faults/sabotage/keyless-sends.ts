/** Sabotage of a worker: it sends to the gateway without the key that makes a repetition safe. */
const send = globalThis.fetch;
globalThis.fetch = (address, init) => {
  const headers = new Headers(init?.headers);
  headers.delete('idempotency-key');
  return send(address, { ...init, headers });
};
