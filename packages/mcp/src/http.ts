/** MCP over streamable HTTP, without sessions: each request brings its caller's own API key. */
import type { IncomingHttpHeaders } from 'node:http';
import { hostHeaderValidation } from '@modelcontextprotocol/sdk/server/middleware/hostHeaderValidation.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express, { type ErrorRequestHandler, type Express, type RequestHandler, type Response } from 'express';
import { createServer, type ServerSettings } from './server.ts';

/** As the API: 8 MiB of `data` in base64, and what stands around it. */
const MAX_BODY_BYTES = 12 * 1024 * 1024;

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** Errors beside a method's own, as in the SDK's transport. */
const REFUSED = -32_000;

/**
 * Serves `/mcp`. A request without `Authorization: Bearer` or `X-API-Key` gets 401, one whose Host
 * or Origin is not allowed 403: a web page that has its name lead here (DNS rebinding) reaches no
 * tool.
 * @param allowedHosts names in Host and Origin, without port, besides those of loopback
 */
export function createApp(
  settings: Omit<ServerSettings, 'apiKey'>,
  allowedHosts: readonly string[] = [],
): Express {
  const hosts = [...LOOPBACK, ...allowedHosts];
  const app = express().disable('x-powered-by');
  app.use(hostHeaderValidation(hosts), refuseOrigins(hosts));
  app.post('/mcp', async (request, response) => {
    const apiKey = keyOf(request.headers);
    if (apiKey === undefined) {
      response.setHeader('WWW-Authenticate', 'Bearer');
      refuse(response, 401, 'Send an API key of Soundpost in Authorization: Bearer, or in X-API-Key.');
      return;
    }
    const server = createServer({ ...settings, apiKey });
    const transport = new StreamableHTTPServerTransport({ maxRequestBodySize: MAX_BODY_BYTES });
    // A caller that leaves ends the wait, not the job.
    response.on('close', () => void server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
  });
  app.all('/mcp', (_request, response) => {
    response.setHeader('Allow', 'POST');
    refuse(response, 405, 'This server keeps no sessions: send a POST.');
  });
  app.use((_request, response) => refuse(response, 404, 'The MCP server answers at /mcp.'));
  // Express would show the error's stack.
  const unexpected: ErrorRequestHandler = (_error, _request, response, _next) =>
    refuse(response, 500, 'The MCP server of Soundpost failed.');
  return app.use(unexpected);
}

function keyOf({ authorization, 'x-api-key': given }: IncomingHttpHeaders): string | undefined {
  const key = given ?? /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  return typeof key === 'string' && key !== '' ? key : undefined;
}

/** Programs send no Origin; a page sends its own. */
function refuseOrigins(hosts: readonly string[]): RequestHandler {
  return ({ headers: { origin } }, response, next) => {
    const host = origin !== undefined && URL.canParse(origin) ? new URL(origin).hostname : origin;
    if (host === undefined || hosts.includes(host)) next();
    else refuse(response, 403, `Invalid Origin: ${host}`);
  };
}

function refuse(response: Response, status: number, message: string): void {
  response.status(status).json({ jsonrpc: '2.0', error: { code: REFUSED, message }, id: null });
}
