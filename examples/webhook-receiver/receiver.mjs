/**
 * Receives and verifies Soundpost's webhooks:
 *
 *   SECRET=whsec_… node examples/webhook-receiver/receiver.mjs [port, default 9001]
 */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.SECRET ?? '');

const server = createServer(async (request, response) => {
  // The signature covers the raw bytes: parse only what verify() accepts.
  const body = await text(request);
  try {
    webhook.verify(body, request.headers);
  } catch {
    process.stdout.write('refused: not signed with this secret, or too old\n');
    response.writeHead(401).end();
    return;
  }
  response.writeHead(204).end();
  process.stdout.write(`verified ${request.headers['webhook-id']}\n`);
  process.stdout.write(`${JSON.stringify(JSON.parse(body), null, 2)}\n`);
});
server.listen(Number(process.argv[2] ?? 9001), '127.0.0.1', () => {
  process.stdout.write(`waiting for webhooks on port ${server.address().port}\n`);
});
