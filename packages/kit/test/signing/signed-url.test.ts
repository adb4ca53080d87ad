/** Addresses that open one file to whoever has them, until they expire. */
import { describe, expect, it } from 'vitest';
import { UrlSigner, type WantedFile } from '../../src/signing/signatures.ts';

const signer = new UrlSigner(Buffer.alloc(32, 1), 'https://sound.example');
const JOB = 'job_0123456789abcdef';
const HOUR = 3_600_000;

function parts(url: string) {
  const { origin, pathname, searchParams } = new URL(url);
  return {
    origin,
    pathname,
    rendition: searchParams.get('rendition'),
    expires: searchParams.get('expires') ?? '',
    signature: searchParams.get('signature') ?? '',
  };
}

describe('a signed address', () => {
  it('leads to the download of its job and is valid', () => {
    const { origin, pathname, rendition, expires, signature } = parts(
      signer.downloadUrl(JOB, Date.now() + HOUR),
    );
    expect([origin, pathname, rendition]).toEqual(['https://sound.example', `/v1/download/${JOB}`, null]);
    expect(signer.verify(JOB, 'output', expires, signature, Date.now())).toBe('valid');
  });

  it('of the voice rendition names it', () => {
    const { rendition, expires, signature } = parts(signer.downloadUrl(JOB, Date.now() + HOUR, 'voice'));
    expect(rendition).toBe('voice');
    expect(signer.verify(JOB, 'voice', expires, signature, Date.now())).toBe('valid');
  });

  it('opens nothing else', () => {
    const { expires, signature } = parts(signer.downloadUrl(JOB, Date.now() + HOUR));
    const later = String(Number(expires) + 1);
    const attempts: [string, WantedFile, string, string][] = [
      ['job_ffffffffffffffff', 'output', expires, signature],
      [JOB, 'voice', expires, signature],
      [JOB, 'output', later, signature],
      [JOB, 'output', expires, signature.replace(/^./, (first) => (first === '0' ? '1' : '0'))],
      [JOB, 'output', expires, signature.slice(1)],
      [JOB, 'output', expires, ''],
      [JOB, 'output', '', signature],
    ];
    for (const attempt of attempts) expect(signer.verify(...attempt, Date.now())).toBe('invalid');
  });

  it('is expired when its time is over, which only who has a right signature is told', () => {
    const { expires, signature } = parts(signer.downloadUrl(JOB, Date.now() - HOUR));
    expect(signer.verify(JOB, 'output', expires, signature, Date.now())).toBe('expired');
    expect(signer.verify(JOB, 'output', expires, 'f'.repeat(64), Date.now())).toBe('invalid');
  });

  it('of another service is worth nothing here', () => {
    const other = new UrlSigner(Buffer.alloc(32, 2), 'https://sound.example');
    const { expires, signature } = parts(other.downloadUrl(JOB, Date.now() + HOUR));
    expect(signer.verify(JOB, 'output', expires, signature, Date.now())).toBe('invalid');
  });
});
