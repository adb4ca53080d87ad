/** Signed download addresses (decisions A4 and A8): an HMAC over the job, what is fetched and the expiry, in the query. */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

export type Rendition = 'output' | 'voice';

/** What is fetched of a job: its first file, that of its voice message, or that of the output with this name. */
export type WantedFile = Rendition | { readonly name: string };
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
  downloadUrl(jobId: string, expiresAtMs: number, wanted: WantedFile = 'output'): string {
    const expires = String(Math.floor(expiresAtMs / 1000));
    const query = new URLSearchParams({
      ...(wanted === 'voice' ? { rendition: wanted } : {}),
      ...(typeof wanted === 'object' ? wanted : {}),
      expires,
      signature: this.#sign(jobId, wanted, expires),
    });
    return `${this.#publicUrl}/v1/download/${jobId}?${query}`;
  }

  verify(
    jobId: string,
    wanted: WantedFile,
    expires: string,
    signature: string,
    nowMs: number,
  ): SignatureVerdict {
    const expected = Buffer.from(this.#sign(jobId, wanted, expires));
    const given = Buffer.from(signature);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      return 'invalid';
    }
    return Number(expires) * 1000 > nowMs ? 'valid' : 'expired';
  }

  #sign(jobId: string, wanted: WantedFile, expires: string): string {
    const what = typeof wanted === 'string' ? wanted : `output:${wanted.name}`;
    return createHmac('sha256', this.#key).update(`${jobId}\n${what}\n${expires}`).digest('hex');
  }
}
