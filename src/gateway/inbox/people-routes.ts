/** Plays the other side of a chat in the inbox: the people of the loopback network. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Router } from 'express';
import { deadline } from 'soundpost-base/deadline';
import { type OtherSide, UnsupportedOperation } from 'soundpost-chat/transport';
import type { MessageContent } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import {
  BlockRequest,
  type CallAnswer,
  CallRequest,
  type InboxPerson,
  JoinRequest,
  type ReplyAnswer,
  ReplyRequest,
  TypingRequest,
} from 'soundpost-contract/inbox';
import { newRouter } from 'soundpost-kit/http/routes';
import { jsonBody } from '../middleware/error-answer.ts';
import type { GatewayServices } from '../services.ts';

/** A recording from the page's microphone, of some minutes. */
const MAX_RECORDING_BYTES = 16 * 1024 * 1024;
const RECORDING_TIMEOUT_MS = 60_000;

export function peopleRoutes(services: GatewayServices): Router {
  const { viewers, sessions } = services;
  const router = newRouter({ isExact: false });
  const otherSideOf = async (request: Request): Promise<OtherSide> => {
    const instance = await viewers.instance(request);
    const { otherSide } = await sessions.of(instance);
    if (otherSide === undefined) {
      throw new UnsupportedOperation('playing the other side', instance.transport);
    }
    return otherSide;
  };
  const chat = '/instances/:instance/chats/:jid';

  router.get(`${chat}/people`, async (request, response) => {
    const instance = await viewers.instance(request);
    const { otherSide } = await sessions.of(instance);
    const people: readonly InboxPerson[] = (await otherSide?.people(String(request.params.jid))) ?? [];
    response.json(people);
  });

  router.post(`${chat}/opened`, async (request, response) => {
    const otherSide = await otherSideOf(request);
    await otherSide.opened(String(request.params.jid));
    response.status(204).end();
  });

  router.post(`${chat}/messages/:id/played`, async (request, response) => {
    const otherSide = await otherSideOf(request);
    await otherSide.played(String(request.params.jid), String(request.params.id));
    response.status(204).end();
  });

  router.post(`${chat}/replies`, jsonUnlessSound, async (request, response) => {
    const otherSide = await otherSideOf(request);
    const { as, content } = await readReply(request, services);
    const answer: ReplyAnswer = await otherSide.reply(String(request.params.jid), as, content);
    response.status(201).json(answer);
  });

  router.post(`${chat}/typing`, jsonBody, async (request, response) => {
    const { as, presence } = TypingRequest.parse(request.body);
    const otherSide = await otherSideOf(request);
    await otherSide.typing(String(request.params.jid), as, presence);
    response.status(204).end();
  });

  router.post('/instances/:instance/calls', jsonBody, async (request, response) => {
    const { as } = CallRequest.parse(request.body);
    const otherSide = await otherSideOf(request);
    const answer: CallAnswer = await otherSide.call(as);
    response.status(201).json(answer);
  });

  router.delete('/instances/:instance/calls/:call', async (request, response) => {
    const otherSide = await otherSideOf(request);
    await otherSide.hangUp(request.params.call);
    response.status(204).end();
  });

  router.post('/instances/:instance/blocks', jsonBody, async (request, response) => {
    const { as, blocked } = BlockRequest.parse(request.body);
    const otherSide = await otherSideOf(request);
    await otherSide.setBlocked(as, blocked);
    response.status(204).end();
  });

  router.post('/instances/:instance/groups', jsonBody, async (request, response) => {
    const { inviteCode } = JoinRequest.parse(request.body);
    const instance = await viewers.instance(request);
    const session = await sessions.connected(instance);
    if (session.acceptInvite === undefined) {
      throw new UnsupportedOperation('entering a group', instance.transport);
    }
    response.status(201).json(await session.acceptInvite(inviteCode));
  });

  return router;
}

const isSound = (request: Request): boolean => request.is(['audio/*', 'video/*']) !== false;

const jsonUnlessSound: RequestHandler = (request, response, next) =>
  isSound(request) ? next() : jsonBody(request, response, next);

/** A text, or a recording's bytes with its speaker in the query. */
async function readReply(
  request: Request,
  services: GatewayServices,
): Promise<{ as: string; content: MessageContent }> {
  if (!isSound(request)) {
    const { as, text } = ReplyRequest.parse(request.body);
    return { as, content: { conversation: text } };
  }
  const { as } = CallRequest.parse(request.query);
  const { notes, workspaces, closing } = services;
  using limit = deadline(RECORDING_TIMEOUT_MS, { signal: closing });
  const { signal } = limit;
  return await workspaces.use('recording', async (workspace) => {
    const path = join(workspace, 'recording');
    await pipeline(request, limited, createWriteStream(path, { mode: 0o600 }), { signal });
    const { audioMessage } = await notes.make(
      { audio: { kind: 'file', path }, workspace, keepsOpus: true },
      signal,
    );
    return { as, content: { audioMessage } };
  });
}

async function* limited(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_RECORDING_BYTES) {
      throw new GatewayError('payload_too_large', 'body: a recording can be 16 MiB at most');
    }
    yield chunk;
  }
}
