/** What has to be done for an instance as soon as it was taken, and until it is lost. */
import { setTimeout as wait } from 'node:timers/promises';
import { GatewayError, gatewayErrorCatalogue } from '../../contract/gateway-errors.ts';
import type { Logger } from '../../logger.ts';
import type { Hold } from './hold.ts';

/** Redis may have been away at the moment in which an instance was taken. */
const AGAIN_MS = 5000;

/** Tries again what may pass, every 5 s. Never rejects: a failure is logged, as an error the first time. */
export async function whileHeld(hold: Hold, work: () => Promise<void>, logger: Logger): Promise<void> {
  for (let level: 'error' | 'debug' = 'error'; hold.isGood; level = 'debug') {
    try {
      return await work();
    } catch (error) {
      logger[level]({ err: error }, 'connecting failed');
      if (error instanceof GatewayError && !gatewayErrorCatalogue[error.code].retryable) {
        return;
      }
      await wait(AGAIN_MS, undefined, { ref: false, signal: hold.lost }).catch(() => undefined);
    }
  }
}
