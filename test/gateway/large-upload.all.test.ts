/** A multipart body whose length nobody announced, and that grows beyond what may be sent. In `all`: it sends 100 MiB. */
import { request as httpRequest } from 'node:http';
import { startTestRedis } from 'soundpost-testing/redis-server';
import { expect, it, onTestFinished } from 'vitest';
import { API_KEY, makeFolder, startTestGateway } from './gateway-fixture.ts';

const MIB = 1024 * 1024;

it('is refused once it has grown too large', async () => {
  const [redis, folder] = await Promise.all([startTestRedis(), makeFolder()]);
  const gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
  onTestFinished(async () => {
    await gateway.close();
    await redis.close();
    await folder.remove();
  });
  const outgoing = httpRequest(`${gateway.url}/message/sendMessengerAudio/main`, {
    method: 'POST',
    headers: {
      apikey: API_KEY,
      'Content-Type': 'multipart/form-data; boundary=x',
      'Transfer-Encoding': 'chunked',
    },
  });
  const answered = new Promise<{ status: number | undefined; body: unknown }>((resolve, reject) => {
    outgoing.once('response', async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode, body: JSON.parse(text) });
      outgoing.destroy();
    });
    outgoing.once('error', reject);
  });
  outgoing.setMaxListeners(0);
  outgoing.write('--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n');
  const piece = Buffer.alloc(MIB);
  for (let sent = 0; sent <= 101 && !outgoing.destroyed; sent += 1) {
    if (outgoing.write(piece)) continue;
    await new Promise<void>((resolve) => {
      outgoing.once('drain', resolve);
      outgoing.once('close', resolve);
    });
  }
  expect(await answered).toMatchObject({ status: 413, body: { code: 'payload_too_large' } });
});
