/** `keys gateway`: the gateway's own key, as this machine's gateway accepts it. */
import { ConfigurationError, loadConfig } from '../process/config.ts';
import { deriveSecrets, readSecretKey, secretKeyPath } from '../process/secrets.ts';

/** @throws ConfigurationError if the key derives from a secret that this machine lacks */
export async function gatewayKey(): Promise<string> {
  const config = loadConfig();
  if (config.GATEWAY_API_KEY !== undefined) return config.GATEWAY_API_KEY;
  const path = secretKeyPath(config);
  const secret = config.SECRET_KEY ?? (await readSecretKey(path));
  if (secret === undefined) {
    throw new ConfigurationError(
      `the gateway's key needs SECRET_KEY (not set) or ${path} (not there): run this where the gateway runs, with its settings`,
    );
  }
  return deriveSecrets(secret).gatewayApiKey;
}
