/** The data behind the inbox page. The page is the only client, so this is no part of the gateway's contract. */
import { Router } from 'express';
import { z } from 'zod';
import type { MessageLog } from '../message-log.ts';
import { unauthorized } from '../middleware/access.ts';
import { jsonBody } from '../middleware/json-body.ts';
import type { Sessions } from '../sessions.ts';
import { UnsupportedOperation } from '../transport.ts';
import { listChats, listMessages } from './chat-view.ts';
import { type EventFeedOptions, eventFeed } from './event-feed.ts';
import type { InboxSessions } from './inbox-sessions.ts';

export interface InboxServices extends EventFeedOptions {
  readonly inboxSessions: InboxSessions;
  readonly sessions: Sessions;
  readonly log: MessageLog;
}

const RedeemRequest = z.object({ code: z.string().min(1).max(128) });

export function inboxRoutes(services: InboxServices): Router {
  const { viewers, sessions, log, inboxSessions } = services;
  const router = Router();
  router.use((_request, response, next) => {
    response.setHeader('Cache-Control', 'no-store');
    next();
  });

  router.post('/session', jsonBody, async (request, response) => {
    const parsed = RedeemRequest.safeParse(request.body);
    const session = parsed.success ? await inboxSessions.redeem(parsed.data.code) : undefined;
    if (session === undefined) {
      throw unauthorized();
    }
    response.status(201).json({ session });
  });

  router.use(viewers.require);
  router.get('/events', eventFeed(services));

  router.get('/instances', async (request, response) => {
    const all = await viewers.instances(request);
    response.json(
      await Promise.all(
        all.map(async (instance) => {
          const session = await sessions.of(instance);
          return {
            id: instance.id,
            name: instance.name,
            transport: instance.transport,
            state: session.state(),
            ownJid: session.ownJid,
            readOnly: session.otherSide === undefined,
          };
        }),
      ),
    );
  });

  router.get('/instances/:instance/chats', async (request, response) => {
    const instance = await viewers.instance(request);
    response.json(await listChats(instance, await sessions.of(instance), log));
  });

  router.get('/instances/:instance/chats/:jid/messages', async (request, response) => {
    const instance = await viewers.instance(request);
    response.json(await listMessages(instance, request.params.jid, log));
  });

  router.post('/instances/:instance/chats/:jid/opened', async (request, response) => {
    const instance = await viewers.instance(request);
    const { otherSide } = await sessions.of(instance);
    if (otherSide === undefined) {
      throw new UnsupportedOperation('playing the other side', instance.transport);
    }
    await otherSide.opened(request.params.jid);
    response.status(204).end();
  });

  router.post('/instances/:instance/chats/:jid/messages/:id/played', async (request, response) => {
    const instance = await viewers.instance(request);
    const { otherSide } = await sessions.of(instance);
    if (otherSide === undefined) {
      throw new UnsupportedOperation('playing the other side', instance.transport);
    }
    await otherSide.played(request.params.jid, request.params.id);
    response.status(204).end();
  });

  return router;
}
