/** Real servers on loopback that misbehave as told. */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';

export interface HostileServer {
  readonly port: number;
  /** Requests in order of arrival. */
  readonly requests: IncomingMessage[];
  close(): Promise<void>;
}

/** `nth` counts the requests from 1. */
type Handler = (request: IncomingMessage, response: ServerResponse, nth: number) => void;

export async function httpServer(handle: Handler): Promise<HostileServer> {
  const requests: IncomingMessage[] = [];
  const server = createHttpServer((request, response) => {
    requests.push(request);
    handle(request, response, requests.length);
  });
  const port = await listen(server);
  return {
    port,
    requests,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** A server below HTTP: `answer` gets the connection once the request's head is there, and what has come by then. */
export async function tcpServer(
  answer: (socket: Socket, received: Buffer) => void,
): Promise<{ port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('data', (received) => answer(socket, received));
  });
  const port = await listen(server);
  return {
    port,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
