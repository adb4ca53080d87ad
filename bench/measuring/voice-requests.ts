/** Requests that send a voice note through the gateway, as our workers do. */
import type { ServiceBench } from './service.ts';

const BOUNDARY = 'soundpostbenchboundary';

/**
 * One request for each of so many new instances: the messages of one leave in the order in which they came. Latin-1, so that each is a string of bytes.
 * @param file a voice note
 */
export async function voiceRequests(
  { gatewayUrl, gatewayKey }: ServiceBench,
  file: Buffer,
  instances: number,
): Promise<string[]> {
  const names = Array.from({ length: instances }, (_, nth) => `bench-${nth}-${file.length}`);
  for (const instanceName of names) {
    const created = await fetch(`${gatewayUrl}/instance/create`, {
      method: 'POST',
      headers: { apikey: gatewayKey, 'content-type': 'application/json' },
      body: JSON.stringify({ instanceName, transport: 'loopback' }),
    });
    if (!created.ok) throw new Error(await created.text());
  }
  const part = (head: string, body: string): string =>
    `--${BOUNDARY}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${body}\r\n`;
  const body = [
    part('name="number"', '12025550101'),
    part('name="file"; filename="voice.ogg"\r\ncontent-type: audio/ogg', file.toString('latin1')),
    `--${BOUNDARY}--\r\n`,
  ].join('');
  return names.map((name) =>
    [
      `POST /message/sendWhatsAppAudio/${name} HTTP/1.1`,
      `host: ${new URL(gatewayUrl).host}`,
      `apikey: ${gatewayKey}`,
      `content-type: multipart/form-data; boundary=${BOUNDARY}`,
      `content-length: ${body.length}`,
      '',
      body,
    ].join('\r\n'),
  );
}
