/** How a tool answers: values with their JSON, failures as one sentence. */
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { CallToolResult, ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js';
import { SoundpostError } from 'soundpost-client/error';

/** Of one call: `signal` aborts when the caller cancels it or leaves. */
export type Call = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** A failure whose message is for the agent as it stands. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
}

/** A tool's handler: a failure becomes an answer with `isError`, which the agent reads. */
export function answering<Args>(
  run: (args: Args, call: Call) => Promise<Record<string, unknown>>,
): (args: Args, call: Call) => Promise<CallToolResult> {
  return async (args, call) => {
    try {
      const value = await run(args, call);
      return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value };
    } catch (error) {
      call.signal.throwIfAborted();
      return { isError: true, content: [{ type: 'text', text: sentenceOf(error) }] };
    }
  };
}

function sentenceOf(error: unknown): string {
  if (error instanceof ToolFailure) return error.message;
  if (!(error instanceof SoundpostError)) {
    process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
    return 'The MCP server of Soundpost failed. Its standard error says why.';
  }
  if (error.code === 'NETWORK_ERROR') {
    return 'NETWORK_ERROR: Soundpost did not answer. Check that it runs, and SOUNDPOST_URL of the MCP server.';
  }
  const { retryAfterSeconds, requestId, httpStatus } = error;
  const again = retryAfterSeconds === undefined ? '' : ` Try again in ${retryAfterSeconds} seconds.`;
  const quote = httpStatus >= 500 && requestId !== undefined ? ` Request ${requestId}.` : '';
  return `${error.message}${again}${quote}`;
}
