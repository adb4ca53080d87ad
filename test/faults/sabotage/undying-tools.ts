/** Loaded into a worker: no signal reaches what it has started, so that an aborted job goes on. */
import { ChildProcess } from 'node:child_process';

ChildProcess.prototype.kill = () => true;
const { kill } = process;
process.kill = (pid, signal) => (pid < 0 ? true : kill(pid, signal));
