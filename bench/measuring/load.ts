/**
 * HTTP load over kept connections, in a thread of its own. It writes bytes that were made before and looks at nothing but status and length of an
 * answer, since on a small machine what a client spends is missing on the server's side. Run as a worker: `workerData` is {@link Load}; it posts its
 * {@link Loaded} once.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

export interface Load {
  readonly port: number;
  /** Whole requests, sent in turns. */
  readonly requests: readonly string[];
  /** The status that every answer has to have. */
  readonly status: number;
  /** One request at a time on each. */
  readonly connections: number;
  readonly seconds: number;
  /** Requests are due at even intervals, whatever becomes of those before; null: each as soon as the one before is answered. */
  readonly perSecond: number | null;
}

export interface Loaded {
  readonly answered: number;
  readonly perSecond: number;
  /** Milliseconds from when a request was due to the end of its answer. */
  readonly p50: number;
  readonly p99: number;
}

const { port, requests, status, connections, seconds, perSecond } = workerData as Load;
const total = perSecond === null ? Number.POSITIVE_INFINITY : Math.round(seconds * perSecond);
const idle: ((dueAt: number) => void)[] = [];
const waiting: number[] = [];
const latencies: number[] = [];
let sent = 0;
let endsAt = Number.POSITIVE_INFINITY;
let end = (): void => undefined;
const ended = new Promise<void>((resolve) => {
  end = resolve;
});

/** The bytes of the first answer in the text, 0 where it is not whole yet. Throws when it is none that was wanted. */
function answerLength(text: string): number {
  const body = text.indexOf('\r\n\r\n') + 4;
  if (body < 4) return 0;
  if (Number(text.slice(9, 12)) !== status) throw new Error(`an answer was ${text.slice(0, 2000)}`);
  const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(text.slice(0, body))?.[1];
  if (length === undefined) throw new Error('an answer without a length');
  const total = body + Number(length);
  return text.length < total ? 0 : total;
}

function open(socket: Socket): void {
  let received = '';
  let due = 0;
  const send = (dueAt: number): void => {
    due = dueAt;
    socket.write(requests[sent % requests.length] ?? '', 'latin1');
    sent += 1;
  };
  socket.setNoDelay(true).setEncoding('latin1');
  socket.on('data', (text: string) => {
    received = received === '' ? text : received + text;
    const length = answerLength(received);
    if (length === 0) return;
    received = received.slice(length);
    const now = performance.now();
    if (now < endsAt) latencies.push(now - due);
    next(send, now);
  });
  socket.on('close', () => {
    throw new Error('a connection was closed');
  });
  idle.push(send);
}

function next(send: (dueAt: number) => void, now: number): void {
  if (perSecond === null) {
    if (now < endsAt) send(now);
    else end();
    return;
  }
  const dueAt = waiting.shift();
  if (dueAt === undefined) idle.push(send);
  else send(dueAt);
  if (latencies.length === total) end();
}

const sockets = Array.from({ length: connections }, () => connect(port, '127.0.0.1'));
await Promise.all(sockets.map((socket) => once(socket, 'connect')));
for (const socket of sockets) open(socket);
const begunAt = performance.now();
if (perSecond === null) {
  endsAt = begunAt + seconds * 1000;
  for (const send of idle.splice(0)) send(begunAt);
} else {
  let due = 0;
  const tick = setInterval(() => {
    const wanted = Math.min(total, Math.floor(((performance.now() - begunAt) / 1000) * perSecond) + 1);
    for (; due < wanted; due += 1) {
      const dueAt = begunAt + (due * 1000) / perSecond;
      // The one that has idled longest, so that none idles until the server closes it.
      const send = idle.shift();
      if (send === undefined) waiting.push(dueAt);
      else send(dueAt);
    }
    if (due === total) clearInterval(tick);
  }, 1);
}
await ended;
const tookSeconds = (Math.min(performance.now(), endsAt) - begunAt) / 1000;
for (const socket of sockets) socket.removeAllListeners('close').destroy();
latencies.sort((a, b) => a - b);
const at = (share: number): number => latencies[Math.floor((latencies.length - 1) * share)] ?? Number.NaN;
const loaded: Loaded = {
  answered: latencies.length,
  perSecond: latencies.length / tookSeconds,
  p50: at(0.5),
  p99: at(0.99),
};
parentPort?.postMessage(loaded);
