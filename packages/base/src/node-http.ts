/**
 * Node's HTTP for what runs all the time. An `import` of `node:http` reads every name that it has:
 * that of WebSocket loads the undici in Node, 4 MiB that nothing here uses.
 */
export const { Agent, createServer, get, IncomingMessage, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');
