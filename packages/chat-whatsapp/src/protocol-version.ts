/** The WhatsApp web client version that Baileys claims; servers refuse outdated ones with 405. */
import { deadline } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { BaileysLibrary } from './library.ts';
import { fetchOptions } from './network-request.ts';

type WhatsAppVersion = [number, number, number];

interface ProtocolVersionOptions {
  /** WHATSAPP_VERSION; undefined: the package's own version until it is refused. */
  readonly set: WhatsAppVersion | undefined;
  readonly outbound: Pick<Outbound, 'service'>;
  readonly logger: Logger;
}

/** The instance stays `connecting` for this long. */
const PAGE_TIMEOUT_MS = 15_000;

/** Shared by all instances: a version found for one of them serves the others. */
export class ProtocolVersion {
  readonly #options: ProtocolVersionOptions;
  #learned: WhatsAppVersion | undefined;

  constructor(options: ProtocolVersionOptions) {
    this.#options = options;
  }

  /** undefined: the package's own. */
  get current(): WhatsAppVersion | undefined {
    return this.#options.set ?? this.#learned;
  }

  /**
   * Call this when a version was refused.
   * @param refused undefined: the package's own
   * @returns whether `current` differs from `refused` now; never if the operator set it
   */
  async renew(library: BaileysLibrary, refused: WhatsAppVersion | undefined): Promise<boolean> {
    const { set, outbound, logger } = this.#options;
    if (set !== undefined) return false;
    if (this.#learned === refused) {
      using limit = deadline(PAGE_TIMEOUT_MS);
      const { version, isLatest } = await library.fetchLatestWaWebVersion({
        ...fetchOptions(await outbound.service()),
        signal: limit.signal,
      });
      if (!isLatest || version.join() === refused?.join()) return false;
      this.#learned = version;
      logger.info({ version: version.join('.') }, 'WhatsApp’s own page names another version of its client');
    }
    return true;
  }
}
