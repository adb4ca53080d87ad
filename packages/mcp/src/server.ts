/** The MCP server: which tools there are, and how a failure is told. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { createClient } from 'soundpost-client/client';
import manifest from '../package.json' with { type: 'json' };
import { chatTool } from './chat-tool.ts';
import type { GatewaySettings } from './gateway.ts';
import { jobTools } from './job-tools.ts';

export interface ServerSettings {
  /** Base address of the API. */
  readonly url: string;
  /** Of the caller; the API decides what it may do. */
  readonly apiKey: string;
  /** Without it there is no tool `list_chats`. */
  readonly gateway?: GatewaySettings | undefined;
  /** How long a tool waits for a job before it answers the job's id. Default 50 s. */
  readonly waitMs?: number;
}

/** Many clients give up on a tool after 60 s. */
const WAIT_MS = 50_000;

const INSTRUCTIONS = `Soundpost takes the audio out of videos and sends it as voice messages.
extract, transcribe and send_voice_message wait for the end of their job for at most 50 seconds. After that they answer the jobId, and the job goes on: call status with it. Do not start the job again.`;

export function createServer({ url, apiKey, gateway, waitMs = WAIT_MS }: ServerSettings): McpServer {
  const server = new McpServer(
    { name: 'soundpost', title: 'Soundpost', version: manifest.version },
    { instructions: INSTRUCTIONS },
  );
  const client = createClient({ baseUrl: url, apiKey });
  jobTools(server, client, waitMs);
  if (gateway !== undefined) chatTool(server, client, gateway, waitMs);
  return server;
}
