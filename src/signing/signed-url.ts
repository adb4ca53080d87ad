/** Signed download addresses (decisions A4): an HMAC over the job, what is fetched and the expiry, in the query. */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

export type Rendition = 'output' | 'voice';
type SignatureVerdict = 'valid' | 'invalid' | 'expired';

export class UrlSigner {
  /** As an object: of bytes one would be made with each signature, which takes seven times as long. */
  readonly #key: KeyObject;
  readonly #publicUrl: string;

  constructor(key: Buffer, publicUrl: string) {
    this.#key = createSecretKey(key);
    this.#publicUrl = publicUrl;
  }

  /** The absolute address under which anybody may fetch the file until `expiresAtMs`. */
  downloadUrl(jobId: string, expiresAtMs: number, rendition: Rendition = 'output'): string {
    const expires = String(Math.floor(expiresAtMs / 1000));
    const query = new URLSearchParams({
      ...(rendition === 'voice' ? { rendition } : {}),
      expires,
      signature: this.#sign(jobId, rendition, expires),
    });
    return `${this.#publicUrl}/v1/download/${jobId}?${query}`;
  }

  verify(
    jobId: string,
    rendition: Rendition,
    expires: string,
    signature: string,
    nowMs: number,
  ): SignatureVerdict {
    const expected = Buffer.from(this.#sign(jobId, rendition, expires));
    const given = Buffer.from(signature);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      return 'invalid';
    }
    return Number(expires) * 1000 > nowMs ? 'valid' : 'expired';
  }

  #sign(jobId: string, rendition: Rendition, expires: string): string {
    return createHmac('sha256', this.#key).update(`${jobId}\n${rendition}\n${expires}`).digest('hex');
  }
}
