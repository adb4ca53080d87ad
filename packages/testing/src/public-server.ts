/**
 * A messaging server of the interface that others wrote, as version 2.3.6 of the public one was
 * seen to answer: it encodes again what it is not told to leave, refuses empty lists, answers
 * objects for numbers that are not there, and posts `data.keyId` to a webhook without a signature.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fetch } from './http.ts';
import { receivedBody } from './received-body.ts';

export interface PublicServer {
  readonly url: string;
  /** SHA-256 of what reached people, by message id. */
  readonly sent: Map<string, string>;
  close(): Promise<void>;
}

const STATUSES = ['SERVER_ACK', 'DELIVERY_ACK', 'READ', 'PLAYED'];

/** @param webhook where each instance's events go, token and all */
export async function startPublicServer(apiKey: string, webhook: () => string): Promise<PublicServer> {
  const sent = new Map<string, string>();
  const telling: Promise<unknown>[] = [];
  const tell = async (keyId: string, remoteJid: string): Promise<void> => {
    const isGivenUp = remoteJid.startsWith('12025550131');
    for (const status of isGivenUp ? ['SERVER_ACK', 'ERROR'] : STATUSES) {
      const data = {
        ...(status === 'ERROR' && { error: { code: 131026, message: 'nobody is there' } }),
        keyId,
        remoteJid,
        fromMe: true,
        status,
        instanceId: 'theirs',
        messageId: randomBytes(8).toString('hex'),
      };
      await fetch(webhook(), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          event: 'messages.update',
          instance: 'theirs',
          data,
          destination: webhook(),
          date_time: new Date().toISOString(),
          sender: '4915100000009@s.whatsapp.net',
          server_url: 'http://public.example',
          apikey: 'theirs',
        }),
      });
    }
  };
  const server = createServer(async (request, response) => {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const refuse = (...message: unknown[]): void =>
      answer(400, { status: 400, error: 'Bad Request', response: { message } });
    const body = JSON.parse((await receivedBody(request))?.toString() || '{}');
    if (request.headers.apikey !== apiKey) {
      return answer(401, { status: 401, error: 'Unauthorized', response: { message: 'Unauthorized' } });
    }
    if (!request.url?.startsWith('/message/sendWhatsAppAudio/')) {
      return answer(404, {
        status: 404,
        error: 'Not Found',
        response: { message: [`Cannot ${request.method} ${request.url}`] },
      });
    }
    const { number, audio, delay, mentioned, encoding } = body;
    if (typeof number !== 'string') return refuse([['number is not of a type(s) string']]);
    if (delay !== undefined && !Number.isInteger(delay)) return refuse(['"delay" must be an integer']);
    if (mentioned?.length === 0) return refuse(['"mentioned" does not meet minimum length of 1']);
    const jid = `${number.replace(/\D/g, '')}@s.whatsapp.net`;
    if (number.endsWith('404')) return refuse({ exists: false, jid, name: '', number });
    if (number.endsWith('500')) return refuse('[object Object]');
    const file = Buffer.from(audio, 'base64');
    const id = `3EB0${randomBytes(9).toString('hex').toUpperCase()}`;
    // What it encodes again is another file.
    sent.set(
      id,
      createHash('sha256')
        .update(encoding === false ? file : Buffer.concat([file, file]))
        .digest('hex'),
    );
    answer(201, {
      key: { remoteJid: jid, fromMe: true, id },
      pushName: '',
      status: 'PENDING',
      message: { audioMessage: { mimetype: 'audio/ogg; codecs=opus', ptt: true, seconds: 3 } },
      contextInfo: null,
      messageType: 'audioMessage',
      messageTimestamp: Math.floor(Date.now() / 1000),
      instanceId: 'theirs',
      source: 'unknown',
    });
    telling.push(tell(id, jid));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent,
    async close() {
      await Promise.allSettled(telling);
      server.closeAllConnections();
      server.close();
    },
  };
}
