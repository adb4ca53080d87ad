/** Decisions A2a and A7: a source whose server lies about its length fails with a code that says so; nothing short is called whole. */
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { rowsOfRun } from 'soundpost-testing/by-run';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { beforeAll, expect, it } from 'vitest';
import { useService } from './api-fixture.ts';

const service = useService();

/** Files that know their own size (decisions A2a). */
const files = {
  mp4: ['-c:v', 'mpeg4', '-c:a', 'aac', '-movflags', '+faststart'],
  mov: ['-c:v', 'mpeg4', '-c:a', 'aac', '-movflags', '+faststart'],
  wav: ['-vn'],
  avi: ['-c:v', 'mpeg4', '-c:a', 'libmp3lame'],
  webm: ['-c:v', 'libvpx', '-deadline', 'realtime', '-c:a', 'libopus'],
  flv: ['-c:v', 'flv', '-ar', '44100', '-c:a', 'aac'],
} as const;

const SHARE = 0.6;

/** How a server sends less than there is, and the code of the job's failure. */
const lies = {
  'Content-Length is too small': {
    code: 'INVALID_VIDEO',
    send(response: ServerResponse, bytes: Buffer, part: Buffer) {
      const { socket } = response;
      socket?.end(Buffer.concat([headOf(`Content-Length: ${part.length}`), bytes]));
    },
  },
  'Content-Length is too large': {
    code: 'DOWNLOAD_FAILED',
    send(response: ServerResponse, bytes: Buffer, part: Buffer) {
      response.socket?.end(Buffer.concat([headOf(`Content-Length: ${bytes.length}`), part]));
    },
  },
  'chunks without their end': {
    code: 'DOWNLOAD_FAILED',
    send(response: ServerResponse, _bytes: Buffer, part: Buffer) {
      const chunk = [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')];
      response.socket?.end(Buffer.concat([headOf('Transfer-Encoding: chunked'), ...chunk]));
    },
  },
  'chunks that end early': {
    code: 'INVALID_VIDEO',
    send(response: ServerResponse, _bytes: Buffer, part: Buffer) {
      response.end(part);
    },
  },
  'no length, closed early': {
    code: 'INVALID_VIDEO',
    send(response: ServerResponse, _bytes: Buffer, part: Buffer) {
      response.socket?.end(Buffer.concat([headOf('Content-Type: video/mp4'), part]));
    },
  },
} as const;

function headOf(field: string): Buffer {
  return Buffer.from(`HTTP/1.1 200 OK\r\n${field}\r\nConnection: close\r\n\r\n`, 'latin1');
}

type Extension = keyof typeof files;
type Lie = keyof typeof lies;
const cases = (Object.keys(files) as Extension[]).flatMap((extension) =>
  (Object.keys(lies) as Lie[]).map((lie) => ({ extension, lie })),
);

const rows = rowsOfRun(cases, ({ extension }) => extension === 'mp4');
const sources = new Map<Extension, string>();
beforeAll(async () => {
  for (const extension of new Set(rows.map((row) => row.extension))) {
    const pictures = ['-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=10:d=5'];
    const sound = ['-f', 'lavfi', '-i', 'anoisesrc=d=5:r=48000:a=0.3'];
    const args = [...pictures, ...sound, ...files[extension]];
    sources.set(extension, await cachedMedia(`whole.${extension}`, args));
  }
});

it.concurrent.each(rows)('$extension: $lie', async ({ extension, lie }) => {
  const bytes = await readFile(sources.get(extension) ?? '');
  const part = bytes.subarray(0, Math.floor(bytes.length * SHARE));
  const { code, send } = lies[lie];
  const path = `/${encodeURIComponent(lie)}.${extension}`;
  const url = service().outside.on(path, (_request, response) => send(response, bytes, part));
  const jobId = await service().submit({ source: { type: 'url', url }, output: { format: 'mp3' } });
  const job = await service().reaches(jobId, 'completed', 'failed');
  expect({ status: job.status, code: job.error?.code, outputFile: job.outputFile }).toEqual({
    status: 'failed',
    code,
    outputFile: null,
  });
});
