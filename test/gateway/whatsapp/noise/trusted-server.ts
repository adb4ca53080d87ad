/** The server of WhatsApp's, with a certificate that this process trusts. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { WA_CERT_DETAILS } from 'baileys';
import { WhatsAppServer } from './whatsapp-server.ts';

/**
 * Baileys believes it from then on; its address has to be given to `makeWASocket`.
 * @param account digits of the phone that pairs
 * @param folder for the certificate
 */
export async function startTrustedServer(account: string, folder: string): Promise<WhatsAppServer> {
  const at = (name: string): string => join(folder, name);
  await promisify(execFile)('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'],
    ...['-keyout', at('server.key'), '-out', at('server.crt')],
  ]);
  const [cert, key] = await Promise.all([readFile(at('server.crt')), readFile(at('server.key'))]);
  tls.setDefaultCACertificates([...tls.getCACertificates(), cert.toString()]);
  const server = new WhatsAppServer(account, { cert, key });
  await server.start();
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(server.authority.publicKey);
  return server;
}
