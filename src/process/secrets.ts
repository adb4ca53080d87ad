/**
 * Every secret of the service is derived from one root (decisions E, SECRET_KEY), so that one value is all that
 * processes on different machines have to share. HKDF-SHA256 (RFC 5869) with a label a purpose.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

interface DerivedSecrets {
  /** HMAC key under which API keys and tokens are stored. */
  readonly keyPepper: Buffer;
  /** HMAC key of signed download URLs. */
  readonly urlSigning: Buffer;
  /** AES-256 key for what is encrypted at rest: webhook secrets, transport passwords. */
  readonly encryption: Buffer;
  /** The gateway's own key, unless the operator chose one. */
  readonly gatewayApiKey: string;
  /** Standard Webhooks secret of the events that the gateway posts to the API. */
  readonly gatewayEventsSecret: string;
  /** Tells one root from another, and nothing of it: 32 hexadecimal digits, which Redis keeps. */
  readonly fingerprint: string;
}

const FINGERPRINT_DIGITS = 32;

export function deriveSecrets(secretKey: string): DerivedSecrets {
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', secretKey, '', `soundpost ${purpose}`, 32));
  return {
    keyPepper: derive('api keys'),
    urlSigning: derive('signed urls'),
    encryption: derive('encryption at rest'),
    gatewayApiKey: derive('gateway api key').toString('hex'),
    gatewayEventsSecret: `whsec_${derive('gateway events').toString('base64')}`,
    fingerprint: derive('fingerprint').toString('hex').slice(0, FINGERPRINT_DIGITS),
  };
}

/** For whoever made the file to write into it, unless a caller has another patience. */
const WRITTEN_WITHIN_MS = 5000;
const LOOK_EACH_MS = 20;
const LEAST_CHARACTERS = 32;

/**
 * The root secret of an installation that was given none: made once in the file, mode 0600.
 * Two processes that start at once agree: the file is created exclusively, and the other one waits until it is written.
 */
export async function savedSecretKey(path: string, withinMs = WRITTEN_WITHIN_MS): Promise<string> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  try {
    const file = await open(path, 'wx', 0o600);
    try {
      await file.writeFile(randomBytes(32).toString('hex'));
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!isCoded(error, 'EEXIST')) throw error;
  }
  const secret = await readSecretKey(path, withinMs);
  if (secret === undefined) throw new Error(`${path} was removed while it was read`);
  return secret;
}

/** What stands in the file, once it is written; undefined without a file. */
export async function readSecretKey(path: string, withinMs = WRITTEN_WITHIN_MS): Promise<string | undefined> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const text = await readFile(path, 'utf8').catch((error: unknown) => {
      if (isCoded(error, 'ENOENT')) return undefined;
      throw error;
    });
    const secret = text?.trim();
    if (secret === undefined || secret.length >= LEAST_CHARACTERS) return secret;
    if (performance.now() > untilMs) {
      throw new Error(
        `${path} does not hold a secret of at least 32 bytes; restore it from a backup, or remove it`,
      );
    }
    await wait(LOOK_EACH_MS);
  }
}

function isCoded(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
