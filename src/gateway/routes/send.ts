/** `send<Brand>Audio` and `sendText` (messaging-gateway.md "Send audio message"; decisions B). */
import type { Request, Response } from 'express';
import type { Instance } from 'soundpost-chat/instances';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import {
  SendAudioFields,
  SendAudioRequest,
  SendTextRequest,
  SentMessage,
  SentText,
} from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { IdempotencyHeaders } from 'soundpost-contract/request-headers';
import { hashOf, type IdempotencyPolicy, once } from 'soundpost-kit/http/idempotency';
import { z } from 'zod';
import { badRequest, readJson } from '../middleware/error-answer.ts';
import { readMultipart } from '../multipart.ts';
import { callerGone, type Turn } from '../outgoing.ts';
import { named, type Route } from '../route.ts';
import type { GatewayServices } from '../services.ts';
import { type AudioInput, parseAudio } from '../voice-notes.ts';

// Handles the `Idempotency-Key`: after a failure it stays bound to its body, and a retry sends
// again.

const idempotencyPolicy: IdempotencyPolicy = {
  isUndone: () => false,
  refusal: (reason, retryAfterSeconds) =>
    reason === 'mismatch'
      ? new GatewayError('idempotency_mismatch', 'Idempotency-Key: was used before with another body')
      : new GatewayError(
          'idempotency_in_progress',
          'Idempotency-Key: the first request with it is still running',
          { retryAfterSeconds },
        ),
};

interface ParsedSend {
  readonly fields: SendAudioFields;
  readonly audio: AudioInput;
  /** Equal for equal requests. */
  readonly fingerprint: string;
}

const LONGEST_IDEMPOTENCY_KEY = 255;

/** The same fields, with the audio as a file. */
const SendAudioForm = SendAudioFields.extend({
  file: z.string().meta({ description: 'The audio, at most 100 MiB', format: 'binary' }),
});

const SEND_ERRORS = [
  'unknown_recipient',
  'idempotency_in_progress',
  'idempotency_mismatch',
  'rate_limited',
  'unsupported',
  'network_refused',
  'not_connected',
  'timeout',
] as const;

/** One route for each brand segment; the first is the documented one. */
export function sendAudioRoutes(services: GatewayServices): Route[] {
  return services.brands.map((brand) => ({
    method: 'post',
    path: `/message/send${brand}Audio/:instance`,
    access: 'instance',
    docs: {
      operationId: `send${brand}Audio`,
      summary: 'Send an audio message',
      description:
        'Send `audio` in JSON, or `file` in a multipart form. Any file with audio becomes a voice note as phones record it. A file in that form is sent unchanged, and other Opus packets are repacked without loss. You get the response when the network has accepted the message.',
      tag: 'Messages',
      answer: { status: 200, description: 'The pending message', body: SentMessage },
      errors: ['not_audio', 'audio_unreachable', ...SEND_ERRORS],
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
  const { sender, workspaces, order } = services;
  const gone = callerGone(response);
  // Requests join the order once complete, before anything else can delay them.
  let turn: Turn | undefined;
  let json: unknown;
  if (!request.is('multipart/form-data')) {
    json = await readJson(request, response);
    turn = order.join(instance.id);
  }
  try {
    await workspaces.use('send', async (workspace) => {
      const { fields, audio, fingerprint } = await parseSend(request, json, workspace);
      const place = turn ?? order.join(instance.id);
      turn = place;
      const content = { audio, workspace, keepsOpus: fields.encoding === false };
      const answer = await answerOnce(
        { request, response, instance, services },
        fingerprint,
        (idempotencyKey) => sender.voice({ instance, fields, content, idempotencyKey, turn: place, gone }),
      );
      response.status(200).json(answer);
    });
  } finally {
    turn?.leave();
  }
}

export function sendTextRoutes(services: GatewayServices): Route[] {
  return [
    {
      method: 'post',
      path: '/message/sendText/:instance',
      access: 'instance',
      docs: {
        operationId: 'sendText',
        summary: 'Send a text',
        description: 'You get the response when the network has accepted the message.',
        tag: 'Messages',
        answer: { status: 201, description: 'The pending message', body: SentText },
        errors: SEND_ERRORS,
      },
      body: SendTextRequest,
      headers: IdempotencyHeaders,
      async handle(request, response, found) {
        const instance = named(found);
        const gone = callerGone(response);
        const json = await readJson(request, response);
        const turn = services.order.join(instance.id);
        try {
          const parsed = SendTextRequest.safeParse(json);
          if (!parsed.success) {
            throw badRequest(parsed.error);
          }
          const { text: content, ...fields } = parsed.data;
          const fingerprint = hashOf(JSON.stringify(['text', parsed.data]));
          const answer = await answerOnce(
            { request, response, instance, services },
            fingerprint,
            (idempotencyKey) =>
              services.sender.text({ instance, fields, content, idempotencyKey, turn, gone }),
          );
          response.status(201).json(answer);
        } finally {
          turn.leave();
        }
      },
    },
  ];
}

interface Exchange {
  readonly request: Request;
  readonly response: Response;
  readonly instance: Instance;
  readonly services: GatewayServices;
}

/** Sends, or repeats the answer of an earlier request with this Idempotency-Key. */
async function answerOnce<Answer>(
  { request, response, instance, services: { redis } }: Exchange,
  fingerprint: string,
  send: (idempotencyKey: string | undefined) => Promise<Answer>,
): Promise<Answer> {
  const idempotencyKey = readIdempotencyKey(request);
  if (idempotencyKey === undefined) {
    return send(undefined);
  }
  const record = recordOf(instance, idempotencyKey);
  const { answer, replayed } = await once(redis, { record, fingerprint }, idempotencyPolicy, () =>
    send(idempotencyKey),
  );
  if (replayed) {
    response.setHeader('Idempotent-Replayed', 'true');
  }
  return answer;
}

/** Each instance has its own keys. */
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
    // The schema orders the fields and drops unknown ones.
    fingerprint: hashOf(JSON.stringify(parsed.data)),
  };
}
