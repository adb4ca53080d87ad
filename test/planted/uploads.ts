/** What is promised of files that come in: forms, raw bodies, tus, budgets. */
import type { Fault } from './fault.ts';

export const uploadFaults: readonly Fault[] = [
  {
    name: 'expired-upload-usable',
    promise: 'api.md "Upload first": an upload may be used until expiresAt',
    in: 'readUpload',
    search: 'upload.expiresAtMs > redisNow()',
    replace: 'upload.expiresAtMs > 0',
    tests: ['test/api/uploads.test.ts', 'test/api/uploads-tus.test.ts'],
  },
  {
    name: 'tus-checksum-not-compared',
    promise: 'api.md "Upload first": tus with checksum: 460 where the bytes do not fit',
    in: 'Checksum.demandMatch',
    search: '!this.#hash.digest().equals(this.#expected)',
    replace: 'this.#hash.digest().length !== this.#expected.length',
    tests: ['test/api/uploads-tus.test.ts'],
  },
  {
    name: 'uploads-without-budget',
    promise: 'reference/api.md "Limits": above UPLOADS_PER_KEY or UPLOAD_BYTES_PER_KEY 429',
    in: 'beginWithinBudget',
    search: 'if (over === undefined) return;',
    replace: 'if (over === undefined || over.retryAfterSeconds > 0) return;',
    tests: ['test/api/upload-budget.test.ts'],
  },
  {
    name: 'unknown-part-accepted',
    promise: 'api.md "Sources": any other part of a form is refused',
    in: 'readForm',
    search: '(isRepeated || !only.textParts.includes(name))) { fault(only.extraPart(name));',
    replace: '(isRepeated || !only.textParts.includes(name))) { only.extraPart(name);',
    tests: ['test/api/multipart.test.ts'],
  },
  {
    name: 'large-upload-not-sniffed',
    promise: 'api.md "Upload first": what is no known container is refused at once with INVALID_VIDEO',
    in: 'containersOnly',
    search: 'else await demandContainer(bytesSource(head, Number.POSITIVE_INFINITY));',
    replace: '',
    tests: ['test/api/uploads.test.ts', 'test/api/multipart.test.ts'],
  },
  {
    name: 'upload-goes-under-its-job',
    promise: 'api.md "Upload first": a job that uses an upload keeps it until the job has ended',
    in: 'upload-is-held.lua',
    search: 'if created and not finished then return 1 end',
    replace: '',
    tests: ['test/jobs/janitor/janitor.test.ts', 'test/api/uploads.test.ts'],
  },
  {
    name: 'full-disk-takes-bytes',
    promise: 'failure.md "The disk is full": uploads: 503 before their bytes are taken',
    in: 'withRoom',
    search: 'if (claim === undefined) { throw noRoom(); }',
    replace: 'if (claim === undefined) return take();',
    tests: ['test/api/disk.test.ts'],
  },
];
