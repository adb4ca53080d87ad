/**
 * Loaded into a worker by `--import`: from SIGUSR2 on it asks for no more jobs, as with a connection that is dead without anybody
 * having been told. It can be closed, which ends such a connection.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'bullmq';

let deaf = false;
process.on('SIGUSR2', () => {
  deaf = true;
});
// What the worker's loop calls, see node_modules/bullmq/dist/esm/classes/worker.js.
const loop = Worker.prototype as unknown as {
  readonly name: string;
  readonly closing?: Promise<void>;
  _getNextJob(...args: unknown[]): Promise<unknown>;
};
const ask = loop._getNextJob;
loop._getNextJob = async function (...args) {
  if (!deaf || this.name !== 'extract') return ask.apply(this, args);
  while (this.closing === undefined) await wait(50);
  return undefined;
};
