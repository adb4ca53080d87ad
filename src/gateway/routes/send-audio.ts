/** `POST /message/send<Brand>Audio/{instance}` (messaging-gateway.md "Send audio message"; decisions B "Audio"). */
import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { SendAudioFields, SendAudioRequest, SentMessage } from '../../contract/gateway.ts';
import { GatewayError } from '../../contract/gateway-errors.ts';
import { IdempotencyHeaders } from '../../contract/request-headers.ts';
import { type AudioInput, parseAudio } from '../audio-input.ts';
import type { Instance } from '../instances.ts';
import { badRequest } from '../middleware/error-answer.ts';
import { readMultipart } from '../multipart.ts';
import type { Turn } from '../outgoing-order.ts';
import { type Route, readJson } from '../route.ts';
import type { GatewayServices } from '../services.ts';

interface ParsedSend {
  readonly fields: SendAudioFields;
  readonly audio: AudioInput;
  /** Equal for requests that ask for the same. */
  readonly fingerprint: string;
}

const LONGEST_IDEMPOTENCY_KEY = 255;

/** The same fields with the sound as a file. */
const SendAudioForm = SendAudioFields.extend({
  file: z.string().meta({ description: 'The sound, 100 MiB at most', format: 'binary' }),
});

/** One route a brand segment; the first is the one that the interface names. */
export function sendAudioRoutes(services: GatewayServices): Route[] {
  return services.brands.map((brand) => ({
    method: 'post',
    path: `/message/send${brand}Audio/:instance`,
    access: 'instance',
    docs: {
      operationId: `send${brand}Audio`,
      summary: 'Send an audio message',
      description:
        'Anything that holds sound becomes a voice note of Ogg Opus, mono; one that is such a file already is sent as it is. Answers when the network took the message.',
      tag: 'Messages',
      answer: { status: 200, description: 'The message, on its way', body: SentMessage },
      errors: [
        'unknown_recipient',
        'not_audio',
        'audio_unreachable',
        'idempotency_in_progress',
        'idempotency_mismatch',
        'rate_limited',
        'network_refused',
        'not_connected',
        'timeout',
      ],
    },
    body: SendAudioRequest,
    form: SendAudioForm,
    headers: IdempotencyHeaders,
    handle: (request, response, instanceOf) => handle(request, response, instanceOf(), services),
  }));
}

async function handle(
  request: Request,
  response: Response,
  instance: Instance,
  services: GatewayServices,
): Promise<void> {
  const { sender, idempotency, workspaces, order } = services;
  const idempotencyKey = readIdempotencyKey(request);
  // Requests take their place in the order in which they are complete, before anything else may delay them.
  let turn: Turn | undefined;
  if (!request.is('multipart/form-data')) {
    await readJson(request, response);
    turn = order.join(instance.id);
  }
  try {
    const { answer, replayed } = await workspaces.use(async (workspace) => {
      const { fields, audio, fingerprint } = await parseSend(request, workspace);
      const place = turn ?? order.join(instance.id);
      turn = place;
      const run = (): Promise<SentMessage> =>
        sender.send({ instance, fields, audio, workspace, idempotencyKey, turn: place });
      return idempotencyKey === undefined
        ? { answer: await run(), replayed: false }
        : idempotency.once({ scope: instance.id, key: idempotencyKey, fingerprint }, run);
    });
    if (replayed) {
      response.setHeader('Idempotent-Replayed', 'true');
    }
    response.status(200).json(answer);
  } finally {
    turn?.leave();
  }
}

function readIdempotencyKey(request: Request): string | undefined {
  const key = request.get('idempotency-key');
  if (key !== undefined && (key === '' || key.length > LONGEST_IDEMPOTENCY_KEY)) {
    throw new GatewayError(
      'bad_request',
      `Idempotency-Key: must have 1 to ${LONGEST_IDEMPOTENCY_KEY} characters`,
    );
  }
  return key;
}

async function parseSend(request: Request, workspace: string): Promise<ParsedSend> {
  if (!request.is('multipart/form-data')) {
    return parseJson(request.body);
  }
  const { fields, file } = await readMultipart(request, workspace);
  if (file === undefined) {
    return parseJson(fields);
  }
  const parsed = SendAudioFields.safeParse(fields);
  if (!parsed.success) {
    throw badRequest(parsed.error);
  }
  return {
    fields: parsed.data,
    audio: { kind: 'file', ...file },
    fingerprint: sha256(JSON.stringify([parsed.data, file.sha256])),
  };
}

function parseJson(body: unknown): ParsedSend {
  const parsed = SendAudioRequest.safeParse(body);
  if (!parsed.success) {
    throw badRequest(parsed.error);
  }
  const { audio, ...fields } = parsed.data;
  return {
    fields,
    audio: parseAudio(audio),
    // The schema puts the fields into its own order and drops what it does not know.
    fingerprint: sha256(JSON.stringify(parsed.data)),
  };
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
