/**
 * Uploads a file in pieces that survive a lost connection, and submits a job for it:
 *
 *   API=http://127.0.0.1:8080 KEY=sp_… node upload.mjs <file>
 *
 * If it is interrupted, run it again to resume. In a browser, pass the File instead of the stream.
 */
import { createReadStream, statSync } from 'node:fs';
import { basename } from 'node:path';
import { createClient } from 'soundpost-client';
import { FileUrlStorage, Upload } from 'tus-js-client';

const { API = '', KEY = '' } = process.env;
const [file = ''] = process.argv.slice(2);

const url = await new Promise((resolve, reject) => {
  const upload = new Upload(createReadStream(file), {
    endpoint: `${API}/v1/uploads`,
    headers: { 'X-API-Key': KEY },
    metadata: { filename: basename(file) },
    uploadSize: statSync(file).size,
    chunkSize: 8 * 1024 * 1024,
    // Remembers the upload for the next run. Browsers do this by themselves.
    urlStorage: new FileUrlStorage('uploads.json'),
    removeFingerprintOnSuccess: true,
    retryDelays: [0, 1000, 3000, 10_000],
    onProgress: (sent, total) => process.stderr.write(`${Math.round((sent / total) * 100)} %\n`),
    onSuccess: () => resolve(upload.url),
    onError: reject,
  });
  upload.findPreviousUploads().then(([previous]) => {
    if (previous !== undefined) {
      upload.resumeFromPreviousUpload(previous);
    }
    upload.start();
  }, reject);
});

const id = String(url).split('/').at(-1);
process.stdout.write(`uploaded ${id}\n`);
const soundpost = createClient({ baseUrl: API, apiKey: KEY });
const { jobId } = await soundpost.extract({
  source: { type: 'upload', file: id },
  output: { format: 'mp3', normalize: true },
});
const { outputFile } = await soundpost.waitFor(jobId);
process.stdout.write(`${outputFile.filename}: ${outputFile.url}\n`);
