/**
 * What the service is compared with as a whole: a server as one writes it in an afternoon, without queue, sandbox or checks. It takes the video as part `file` of a
 * multipart form and answers with the MP3: `node bare-extract.ts <folder for its files>`; prints its port. How many run at a time is up to its clients.
 */
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyHeaders } from '@fastify/busboy';
import express from 'express';
import ffmpeg from 'fluent-ffmpeg';

const folder = process.argv[2] ?? '';
let requests = 0;

const app = express();
app.post('/extract', async (request, response) => {
  requests += 1;
  const video = join(folder, `bare-${requests}.mp4`);
  const sound = join(folder, `bare-${requests}.mp3`);
  const form = new Busboy({ headers: request.headers as BusboyHeaders });
  let written = Promise.resolve();
  form.on('file', (_name, file) => {
    written = pipeline(file, createWriteStream(video));
  });
  await pipeline(request, form);
  await written;
  await new Promise((resolve, reject) => {
    ffmpeg(video)
      // That of the PATH, whatever FFMPEG_PATH says.
      .setFfmpegPath('ffmpeg')
      .noVideo()
      .audioCodec('libmp3lame')
      .audioBitrate('192k')
      .on('end', resolve)
      .on('error', reject)
      .save(sound);
  });
  response.sendFile(sound, async () => {
    await Promise.all([rm(video), rm(sound)]);
  });
});
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`);
});
