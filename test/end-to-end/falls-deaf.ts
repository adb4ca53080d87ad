/**
 * Loaded into a worker by `--import`: from SIGUSR2 on it asks for no more jobs, as with a connection that is dead without anybody
 * having been told.
 */
import { Worker } from 'bullmq';

let deaf = false;
process.on('SIGUSR2', () => {
  deaf = true;
});
const silence = new Promise<never>(() => undefined);
// What the worker's loop calls, see node_modules/bullmq/dist/esm/classes/worker.js.
const loop = Worker.prototype as unknown as {
  name: string;
  _getNextJob(...args: unknown[]): Promise<unknown>;
};
const ask = loop._getNextJob;
loop._getNextJob = function (...args) {
  return deaf && this.name === 'extract' ? silence : ask.apply(this, args);
};
