/**
 * Every connection that this process tries to open, whoever opens it, below all libraries: TCP,
 * TLS, local sockets, UDP. A process that is started with it (`node --import`) and CONNECTS_FILE in
 * its environment adds its own to that file, one a line.
 */
import dgram from 'node:dgram';
import { appendFileSync } from 'node:fs';
import net from 'node:net';

interface ConnectRecorder {
  /** `address:port`, or the path of a local socket, in order. */
  readonly attempts: string[];
  stop(): void;
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

export function recordConnects(onAttempt: (at: string) => void = () => undefined): ConnectRecorder {
  const attempts: string[] = [];
  const add = (at: string): void => {
    attempts.push(at);
    onAttempt(at);
  };
  // Node tells each attempt by its address, after whatever a `lookup` has answered; a TLS socket
  // connects as a plain one.
  const tcp = wrap(net.Socket.prototype, 'connect', function (this: unknown) {
    const socket = this as net.Socket;
    if (socket.listeners('connectionAttempt').includes(note)) return;
    socket.on('connectionAttempt', note);
  });
  function note(address: string, port: number | undefined): void {
    add(port === undefined ? address : `${address}:${port}`);
  }
  const udp = (['send', 'connect'] as const).map((name) =>
    wrap(dgram.Socket.prototype, name, (...args: unknown[]) => {
      add(`udp ${args.filter((value) => ['string', 'number'].includes(typeof value)).join(':')}`);
    }),
  );
  return {
    attempts,
    stop() {
      for (const restore of [tcp, ...udp]) restore();
    },
  };
}

/** @returns what puts the method back */
function wrap(owner: object, name: string, before: Method): () => void {
  const methods = owner as Record<string, Method>;
  const own = methods[name];
  if (own === undefined) throw new Error(`there is no ${name}`);
  methods[name] = function (this: unknown, ...args: unknown[]) {
    before.apply(this, args);
    return own.apply(this, args);
  };
  return () => {
    methods[name] = own;
  };
}

const { CONNECTS_FILE } = process.env;
if (CONNECTS_FILE !== undefined) recordConnects((at) => appendFileSync(CONNECTS_FILE, `${at}\n`));
