/** `POST /message/send<Brand>Audio/{instance}` (messaging-gateway.md "Send audio message"; decisions B "Audio"). */
import type { Request, Response } from 'express';
import { z } from 'zod';
import { SendAudioFields, SendAudioRequest, SentMessage } from '../../contract/gateway.ts';
import { GatewayError } from '../../contract/gateway-errors.ts';
import { IdempotencyHeaders } from '../../contract/request-headers.ts';
import { hashOf, once } from '../../http/idempotency.ts';
import { type AudioInput, parseAudio } from '../audio-input.ts';
import { idempotencyPolicy } from '../idempotency.ts';
import type { Instance } from '../instances.ts';
import { badRequest } from '../middleware/error-answer.ts';
import { readJson } from '../middleware/json-body.ts';
import { readMultipart } from '../multipart.ts';
import type { Turn } from '../outgoing-order.ts';
import { gatewayKey } from '../redis-keys.ts';
import { named, type Route } from '../route.ts';
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
    handle: (request, response, instance) => handle(request, response, named(instance), services),
  }));
}

async function handle(
  request: Request,
  response: Response,
  instance: Instance,
  services: GatewayServices,
): Promise<void> {
  const { sender, redis, workspaces, order } = services;
  const idempotencyKey = readIdempotencyKey(request);
  // Requests take their place in the order in which they are complete, before anything else may delay them.
  let turn: Turn | undefined;
  let json: unknown;
  if (!request.is('multipart/form-data')) {
    json = await readJson(request, response);
    turn = order.join(instance.id);
  }
  try {
    const { answer, replayed } = await workspaces.use(async (workspace) => {
      const { fields, audio, fingerprint } = await parseSend(request, json, workspace);
      const place = turn ?? order.join(instance.id);
      turn = place;
      const run = (): Promise<SentMessage> =>
        sender.send({ instance, fields, audio, workspace, idempotencyKey, turn: place });
      return idempotencyKey === undefined
        ? { answer: await run(), replayed: false }
        : once(redis, { record: recordOf(instance, idempotencyKey), fingerprint }, idempotencyPolicy, run);
    });
    if (replayed) {
      response.setHeader('Idempotent-Replayed', 'true');
    }
    response.status(200).json(answer);
  } finally {
    turn?.leave();
  }
}

/** Of another instance the same key is another one. */
function recordOf({ id }: Instance, idempotencyKey: string): string {
  return gatewayKey('idempotency', id, hashOf(idempotencyKey));
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

async function parseSend(request: Request, json: unknown, workspace: string): Promise<ParsedSend> {
  if (!request.is('multipart/form-data')) {
    return parseJson(json);
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
    fingerprint: hashOf(JSON.stringify([parsed.data, file.sha256])),
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
    fingerprint: hashOf(JSON.stringify(parsed.data)),
  };
}
