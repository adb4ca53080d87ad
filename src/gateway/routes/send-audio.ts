/** `POST /message/send<Brand>Audio/{instance}` (messaging-gateway.md "Send audio message"; decisions B "Audio"). */
import { createHash } from 'node:crypto';
import type { Request, RequestHandler } from 'express';
import { SendAudioFields, SendAudioRequest, type SentMessage } from '../../contract/gateway.ts';
import { GatewayError } from '../../contract/gateway-errors.ts';
import { type AudioInput, parseAudio } from '../audio-input.ts';
import type { Idempotency } from '../idempotency.ts';
import type { Access } from '../middleware/access.ts';
import { badRequest } from '../middleware/error-answer.ts';
import { jsonBody } from '../middleware/json-body.ts';
import { readMultipart } from '../multipart.ts';
import type { VoiceSender } from '../voice-sender.ts';
import type { Workspaces } from '../workspace.ts';

export interface SendAudioServices {
  readonly access: Access;
  readonly sender: VoiceSender;
  readonly idempotency: Idempotency;
  readonly workspaces: Workspaces;
}

interface ParsedSend {
  readonly fields: SendAudioFields;
  readonly audio: AudioInput;
  /** Equal for requests that ask for the same. */
  readonly fingerprint: string;
}

const LONGEST_IDEMPOTENCY_KEY = 255;

export function sendAudio({ access, sender, idempotency, workspaces }: SendAudioServices): RequestHandler[] {
  return [
    access.requireInstance,
    (request, response, next) =>
      request.is('multipart/form-data') ? next() : jsonBody(request, response, next),
    async (request, response) => {
      const instance = access.instanceOf(request);
      const idempotencyKey = readIdempotencyKey(request);
      const { answer, replayed } = await workspaces.use(async (workspace) => {
        const { fields, audio, fingerprint } = await parseSend(request, workspace);
        const run = (): Promise<SentMessage> =>
          sender.send({ instance, fields, audio, workspace, idempotencyKey });
        return idempotencyKey === undefined
          ? { answer: await run(), replayed: false }
          : idempotency.once({ scope: instance.id, key: idempotencyKey, fingerprint }, run);
      });
      if (replayed) {
        response.setHeader('Idempotent-Replayed', 'true');
      }
      response.status(200).json(answer);
    },
  ];
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
    audio: { kind: 'file', path: file.path },
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
