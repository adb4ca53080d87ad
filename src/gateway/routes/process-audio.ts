/**
 * `POST /process-audio`: conversion as the public messaging server asks the address in its
 * API_AUDIO_CONVERTER for it (decisions F2; github.com/EvolutionAPI/evolution-audio-converter).
 */
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import type { Instance } from 'soundpost-chat/instances';
import { ConvertAnswer, ConvertFields } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { z } from 'zod';
import type { Input, Turn } from '../converter.ts';
import { badRequest } from '../middleware/error-answer.ts';
import { readMultipart } from '../multipart.ts';
import { callerGone, interrupted } from '../outgoing.ts';
import type { Route } from '../route.ts';
import type { GatewayServices } from '../services.ts';
import { type AudioInput, parseBase64, parseUrl } from '../voice-notes.ts';

/** Of the field `base64`, as text. */
const MAX_BASE64_BYTES = 24 * 1024 * 1024;

const ConvertForm = ConvertFields.extend({
  file: z.string().optional().meta({ description: 'The audio, at most 100 MiB', format: 'binary' }),
});

export function processAudio(services: GatewayServices): Route {
  return {
    method: 'post',
    path: '/process-audio',
    access: 'instance',
    docs: {
      operationId: 'processAudio',
      summary: 'Convert audio',
      description:
        'Send exactly one of `file`, `url` and `base64`, in any format with audio. Without a file, the form may be application/x-www-form-urlencoded. If you disconnect, the conversion stops. The public server calls this at the address in its API_AUDIO_CONVERTER.',
      tag: 'Messages',
      answer: { status: 200, description: 'The converted file', body: ConvertAnswer },
      errors: ['not_audio', 'audio_unreachable', 'network_refused', 'unsupported'],
    },
    form: ConvertForm,
    handle: (request, response, owner) => handle(request, response, owner, services),
  };
}

async function handle(
  request: Request,
  response: Response,
  owner: Instance | undefined,
  { converter, workspaces, closing }: GatewayServices,
): Promise<void> {
  const signal = AbortSignal.any([closing, callerGone(response)]);
  await workspaces.use('convert', async (workspace) => {
    const turn = { workspace, key: owner?.id ?? '', signal };
    try {
      const { input, wanted } = await receive(request, converter, turn);
      const { format, transcribe, language } = wanted;
      // The transcriber may take longer than a connection may be silent
      // (packages/kit/src/http/listener.ts).
      response.setTimeout(0);
      const made = await converter.convert(input, format, turn);
      const duration = Math.max(1, Math.round(made.durationSeconds));
      const transcription = transcribe && (await converter.transcribe(made, language, turn));
      const answer = { duration, format, ...(transcribe && { transcription }) };
      response.status(200).type('json');
      await pipeline(withAudio(answer, made.path), response);
    } catch (error) {
      throw signal.aborted ? interrupted(signal, error) : error;
    }
  });
}

/** The JSON with the file as its `audio`, which is never whole in memory. */
async function* withAudio(answer: object, path: string): AsyncGenerator<string> {
  yield `${JSON.stringify(answer).slice(0, -1)},"audio":"`;
  yield* createReadStream(path, { encoding: 'base64' });
  yield '"}';
}

/** The form, and its audio as a file: what waits for a place holds none of it in memory. */
async function receive(
  request: Request,
  converter: GatewayServices['converter'],
  turn: Turn,
): Promise<{ input: Input; wanted: Pick<ConvertFields, 'format' | 'transcribe' | 'language'> }> {
  if (!request.is(['multipart/form-data', 'application/x-www-form-urlencoded'])) {
    const message = 'Content-Type: must be multipart/form-data or application/x-www-form-urlencoded';
    throw new GatewayError('unsupported_media_type', message);
  }
  const { fields, file } = await readMultipart(request, turn.workspace, MAX_BASE64_BYTES);
  // Forms send what is not filled in as empty text.
  const filled = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
  const parsed = ConvertFields.safeParse(filled);
  if (!parsed.success) throw badRequest(parsed.error);
  const { url, base64, ...wanted } = parsed.data;
  if ([file, url, base64].filter((each) => each !== undefined).length !== 1) {
    throw new GatewayError('bad_request', 'body: must have exactly one of file, url and base64');
  }
  if (wanted.transcribe) converter.demandTranscriber();
  if (file !== undefined) return { input: { ...file, field: 'file' }, wanted };
  const audio = url === undefined ? parseEncoded(base64 ?? '', request) : parseUrl(url);
  const field = url === undefined ? 'base64' : 'url';
  if (audio === undefined) {
    const rule = url === undefined ? 'base64 or a base64 data URI' : 'an http(s) URL';
    throw new GatewayError('bad_request', `${field}: must be ${rule}`);
  }
  return { input: await converter.fetch(field, audio, turn), wanted };
}

/** `curl -d base64=…` does not escape the `+`, which is a space in a form of this type. */
function parseEncoded(base64: string, request: Request): AudioInput | undefined {
  const isEscaped = request.is('multipart/form-data');
  return parseBase64(isEscaped ? base64 : base64.replaceAll(' ', '+'));
}
