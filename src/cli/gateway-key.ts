/** `keys gateway`: the gateway's own key, as the gateway of this machine takes it. */
import { loadConfig } from '../config.ts';
import { deriveSecrets, machineSecretKey } from '../secrets.ts';

export async function gatewayKey(): Promise<string> {
  const { GATEWAY_API_KEY, SECRET_KEY, DATA_DIR } = loadConfig();
  return GATEWAY_API_KEY ?? deriveSecrets(SECRET_KEY ?? (await machineSecretKey(DATA_DIR))).gatewayApiKey;
}
