/** Where Redis is, and what its certificates are checked with: the configuration read and refused before anything connects. */
import { readFile } from 'node:fs/promises';
import { type Config, ConfigurationError } from '../config.ts';
import type { RedisTls } from '../queue/redis.ts';
import { parseRedisUrl } from '../queue/redis-target.ts';

type FileVariable = 'REDIS_CA_FILE' | 'REDIS_CERT_FILE' | 'REDIS_KEY_FILE';

/** `url` is undefined where there is to be an embedded one. Throws a ConfigurationError. */
export async function readRedisAddress(
  config: Config,
): Promise<{ readonly url: string | undefined; readonly tls?: RedisTls }> {
  const url = config.REDIS_URL;
  if (url !== undefined) {
    try {
      parseRedisUrl(url);
    } catch (error) {
      throw new ConfigurationError(`REDIS_URL: ${error instanceof Error ? error.message : 'cannot be read'}`);
    }
  }
  const [ca, cert, key] = await Promise.all([
    pem('REDIS_CA_FILE', config),
    pem('REDIS_CERT_FILE', config),
    pem('REDIS_KEY_FILE', config),
  ]);
  return { url, tls: { ca, cert, key } };
}

async function pem(variable: FileVariable, config: Config): Promise<string | undefined> {
  const path = config[variable];
  if (path === undefined) {
    return undefined;
  }
  if (!config.REDIS_URL?.startsWith('rediss')) {
    throw new ConfigurationError(`${variable} is set, but REDIS_URL does not ask for TLS: write rediss://`);
  }
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new ConfigurationError(`${variable}: cannot be read (${error.message})`);
  });
  if (!text.includes('-----BEGIN ')) {
    throw new ConfigurationError(`${variable}: ${path} is no PEM file`);
  }
  return text;
}
