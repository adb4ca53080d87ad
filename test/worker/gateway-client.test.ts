/** The call of the messaging gateway by itself; what its answers mean for a job is voice.test.ts. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { sendVoiceMessage } from '../../src/followups/kinds/gateway-client.ts';

const REFUSAL = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}';

// Node's own fetch goes on reading the file into a body that is closed, and throws where nobody can catch it: that ends the process.
it('a gateway that hangs up before it has read the file is an answer or none, and no end of the worker', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-gateway-client-'));
  const path = join(folder, 'voice.ogg');
  const sizeBytes = 400_000;
  await writeFile(path, Buffer.alloc(sizeBytes));
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(REFUSAL, () => socket.destroy()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const settings = { url, kind: 'soundpost', brand: 'WhatsApp', apiKey: 'key' } as const;
    const request = { instance: 'main', number: '12025550101', delay: 0 };
    const ends = new Set<string>();
    for (let nth = 0; nth < 20; nth += 1) {
      const { kind } = await sendVoiceMessage(
        settings,
        request,
        { path, sizeBytes, isNote: true, mediaType: 'audio/ogg', url },
        `key-${nth}`,
      );
      ends.add(kind);
    }
    // The connection may be gone before the refusal is read.
    expect(['refused', 'lost']).toEqual(expect.arrayContaining([...ends]));
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
});
