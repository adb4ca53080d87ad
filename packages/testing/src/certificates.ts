/** A private certificate authority, and what it has certified. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Paths of PEM files. */
export interface Certificates {
  readonly ca: string;
  /** For 127.0.0.1 and localhost. */
  readonly server: { readonly cert: string; readonly key: string };
  readonly client: { readonly cert: string; readonly key: string };
}

/** @param folder exists; the files lie in it */
export async function makeCertificates(folder: string): Promise<Certificates> {
  const ca = await makeKey(folder, 'ca');
  const path = join(folder, 'ca.pem');
  await openssl('req', '-x509', '-key', ca, '-subj', '/CN=A private authority', '-days', '1', '-out', path);
  const certify = async (name: string, extension: string) => {
    const key = await makeKey(folder, name);
    const [request, cert, extensions] = ['csr', 'pem', 'ext'].map((kind) =>
      join(folder, `${name}.${kind}`),
    ) as [string, string, string];
    await writeFile(extensions, extension);
    await openssl('req', '-new', '-key', key, '-subj', `/CN=${name}`, '-out', request);
    const signed = ['-CA', path, '-CAkey', ca, '-CAcreateserial', '-days', '1', '-extfile', extensions];
    await openssl('x509', '-req', '-in', request, ...signed, '-out', cert);
    return { cert, key };
  };
  return {
    ca: path,
    server: await certify('server', 'subjectAltName=IP:127.0.0.1,DNS:localhost'),
    client: await certify('client', 'extendedKeyUsage=clientAuth'),
  };
}

async function makeKey(folder: string, name: string): Promise<string> {
  const path = join(folder, `${name}.key`);
  await openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', path);
  return path;
}

async function openssl(...args: string[]): Promise<void> {
  await run('openssl', args);
}
