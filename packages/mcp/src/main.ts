#!/usr/bin/env node
/** The program soundpost-mcp: MCP over standard input and output, or over HTTP with `--http`. */
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import type { createApp } from './http.ts';

const USAGE = `usage: soundpost-mcp [--http [--host 127.0.0.1] [--port 8082] [--allowed-host NAME]...]
  --http            serve MCP at /mcp, for callers with keys of their own
  --host, --port    where to listen
  --allowed-host    a name in Host and Origin that callers may use besides loopback
environment:
  SOUNDPOST_URL     address of the API (http://127.0.0.1:8080)
  SOUNDPOST_API_KEY key of the API, without --http
  SOUNDPOST_GATEWAY_URL, SOUNDPOST_GATEWAY_INSTANCE, SOUNDPOST_GATEWAY_TOKEN
                    a messaging gateway, an instance of it and the token of the instance, for list_chats
`;

const Address = z.url({ protocol: /^https?$/, error: 'must be an http(s) address' });
const Filled = z.string().min(1, 'must not be empty');
const Environment = z
  .object({
    SOUNDPOST_URL: Address.default('http://127.0.0.1:8080'),
    SOUNDPOST_API_KEY: Filled.optional(),
    SOUNDPOST_GATEWAY_URL: Address.optional(),
    SOUNDPOST_GATEWAY_INSTANCE: Filled.optional(),
    SOUNDPOST_GATEWAY_TOKEN: Filled.optional(),
  })
  .transform(({ SOUNDPOST_URL: url, SOUNDPOST_API_KEY: apiKey, ...rest }, context) => {
    const { SOUNDPOST_GATEWAY_URL: at, SOUNDPOST_GATEWAY_INSTANCE: instance } = rest;
    const { SOUNDPOST_GATEWAY_TOKEN: token } = rest;
    const given = [at, instance, token].filter((value) => value !== undefined);
    if (at !== undefined && instance !== undefined && token !== undefined) {
      return { url, apiKey, gateway: { url: at, instance, token } };
    }
    if (given.length > 0) {
      const message = 'is set together with SOUNDPOST_GATEWAY_INSTANCE and SOUNDPOST_GATEWAY_TOKEN, or none';
      context.addIssue({ code: 'custom', path: ['SOUNDPOST_GATEWAY_URL'], message });
    }
    return { url, apiKey, gateway: undefined };
  });

const Port = z.coerce.number('must be a number').int().min(0).max(65_535);

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      http: { type: 'boolean', default: false },
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '8082' },
      'allowed-host': { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  // biome-ignore lint/style/noProcessEnv: a program of its own, installed without the service
  const { apiKey, ...settings } = Environment.parse(process.env);
  // Loaded now: a wrong setting is told at once.
  if (values.http) {
    const { createApp } = await import('./http.ts');
    await listen(createApp(settings, values['allowed-host']), values.host, Port.parse(values.port));
  } else if (apiKey === undefined) {
    throw new Error('SOUNDPOST_API_KEY is not set: give it a key of Soundpost');
  } else {
    const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
    const { createServer } = await import('./server.ts');
    await createServer({ ...settings, apiKey }).connect(new StdioServerTransport());
  }
}

async function listen(app: ReturnType<typeof createApp>, host: string, port: number): Promise<void> {
  const server = app.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  const taken = typeof address === 'object' ? address?.port : port;
  process.stdout.write(`MCP at http://${host.includes(':') ? `[${host}]` : host}:${taken}/mcp\n`);
}

main().catch((error: unknown) => {
  const message =
    error instanceof z.ZodError
      ? error.issues.map((issue) => `${issue.path.join('.') || '--port'} ${issue.message}`).join('\n')
      : error instanceof Error
        ? error.message
        : String(error);
  process.stderr.write(`soundpost-mcp: ${message}\n`);
  process.exitCode = 2;
});
