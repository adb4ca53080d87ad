/**
 * A chat bot: send it a link to a video and it answers with the audio as a voice message.
 *
 *   API=… KEY=… GATEWAY=… GATEWAY_API_KEY=… node bot.mjs [instance, default main] [port, default 9001]
 *
 * The gateway's webhook brings messages; the service downloads, converts and answers.
 */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { createClient, SoundpostError, verifyWebhook } from 'soundpost-client';

const { API = '', KEY = '', GATEWAY = '', GATEWAY_API_KEY = '' } = process.env;
const [instance = 'main', port = '9001'] = process.argv.slice(2);
const soundpost = createClient({ baseUrl: API, apiKey: KEY });

/** Registers the webhook for messages. @returns its signing secret */
async function listen() {
  const answer = await fetch(`${GATEWAY}/webhook/set/${instance}`, {
    method: 'POST',
    headers: { apikey: GATEWAY_API_KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify({ webhook: { url: `http://127.0.0.1:${port}/`, events: ['messages.upsert'] } }),
  });
  if (!answer.ok) {
    throw new Error(`the gateway answers ${answer.status}: ${await answer.text()}`);
  }
  const { webhook } = await answer.json();
  return webhook.secret;
}

async function answerMessage(id, { key, message }) {
  const [url] = /https?:\/\/\S+/.exec(message?.conversation ?? '') ?? [];
  if (key.fromMe || url === undefined) {
    return;
  }
  try {
    const { jobId } = await soundpost.extract(
      {
        source: { type: 'url', url },
        output: { format: 'voice' },
        options: { voiceMessage: { instance, number: key.remoteJid, quoted: { key: { id: key.id } } } },
      },
      // A webhook can arrive twice; each message gets one answer.
      { idempotencyKey: id },
    );
    const { outputFile } = await soundpost.waitFor(jobId);
    process.stdout.write(`${key.remoteJid} gets ${outputFile.duration} s\n`);
  } catch (error) {
    process.stdout.write(`${key.remoteJid}: ${error instanceof SoundpostError ? error.code : error}\n`);
  }
}

const server = createServer(async (request, response) => {
  try {
    const { data } = await verifyWebhook(request.headers, await text(request), secret);
    // Respond first, then work: the gateway is waiting.
    response.writeHead(204).end();
    await answerMessage(request.headers['webhook-id'], data);
  } catch {
    response.writeHead(401).end();
  }
});
const secret = await listen();
server.listen(Number(port), '127.0.0.1', () =>
  process.stdout.write(`listening for messages to ${instance}\n`),
);
