/** Baileys' own log, as far as it may be kept: its records carry keys and whole stanzas, so only their words pass. */
import type { UserFacingSocketConfig } from 'baileys';
import type { Logger } from 'soundpost-base/logger';

type BaileysLogger = NonNullable<UserFacingSocketConfig['logger']>;

export function baileysLogger(logger: Logger, instanceId: string): BaileysLogger {
  const pass = (record: unknown, words?: string): void => {
    const said = words ?? (typeof record === 'string' ? record : undefined);
    logger.debug({ instanceId, said }, 'baileys');
  };
  const drop = (): void => undefined;
  const self: BaileysLogger = {
    // Baileys asks for the level before it composes what is costly to compose.
    level: 'warn',
    child: () => self,
    trace: drop,
    debug: drop,
    info: drop,
    warn: pass,
    error: pass,
  };
  return self;
}
