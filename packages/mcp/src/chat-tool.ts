/** The tool `list_chats`, where an instance of the gateway is configured. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { within } from 'soundpost-base/deadline';
import type { SoundpostClient } from 'soundpost-client/client';
import { z } from 'zod';
import { type GatewaySettings, listChats } from './gateway.ts';
import { answering, ToolFailure } from './tool-answer.ts';

const ChatsAnswer = z.object({
  instance: z.string().describe('What send_voice_message takes as instance'),
  chats: z.array(
    z.object({
      number: z.string().describe('What send_voice_message takes as number'),
      name: z.string(),
      isGroup: z.boolean(),
    }),
  ),
});

/** @param waitMs how long it may take */
export function chatTool(
  server: McpServer,
  client: SoundpostClient,
  gateway: GatewaySettings,
  waitMs: number,
): void {
  server.registerTool(
    'list_chats',
    {
      title: 'List chats',
      description: `Lists the chats of the messaging account "${gateway.instance}", the newest first, to find out where send_voice_message should send.`,
      inputSchema: {
        limit: z.int().min(1).max(200).default(50).describe('How many chats at most. Default 50'),
      },
      outputSchema: ChatsAnswer,
      annotations: { readOnlyHint: true, openWorldHint: true },
    },
    answering(async ({ limit }, { signal }) => {
      const reason = () =>
        new ToolFailure('Soundpost or its gateway has not answered in time. Call list_chats again.');
      const list = async (inTime: AbortSignal) => {
        await checkKey(client, gateway.instance, inTime);
        return listChats(gateway, limit, inTime);
      };
      return { instance: gateway.instance, chats: await within(waitMs, list, { signal, reason }) };
    }),
  );
}

/**
 * The gateway's token is the operator's: chats are only for keys that may send as the instance.
 * Throws SoundpostError if the API refuses the key.
 */
async function checkKey(client: SoundpostClient, instance: string, signal: AbortSignal): Promise<void> {
  const { scopes, instances } = (await client.usage({ signal })).key;
  if (!scopes.includes('voice') || !(instances.includes('*') || instances.includes(instance))) {
    throw new ToolFailure(
      `FORBIDDEN: the key may not send as "${instance}". Use a key with the scope voice and this instance.`,
    );
  }
}
