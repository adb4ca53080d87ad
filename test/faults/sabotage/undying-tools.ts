/** Signals that are meant for ffmpeg are lost, by whichever way they go: those to its process group, and those that the starter is told of. */
import { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';

ChildProcess.prototype.kill = () => true;
const { kill } = process;
process.kill = (pid, signal) => (pid < 0 ? true : kill(pid, signal));

/** A frame of packages/media/src/starter.ts: 4 bytes of the kind 2. */
const isSignal = (bytes: unknown): boolean =>
  Buffer.isBuffer(bytes) && bytes.length === 16 && bytes.readUInt32LE(0) === 4 && bytes.readUInt32LE(4) === 2;
const { write } = Socket.prototype;
Socket.prototype.write = function (this: Socket, ...sent: unknown[]): boolean {
  return isSignal(sent[0]) || Reflect.apply(write, this, sent);
};
