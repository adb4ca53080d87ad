/** The data behind the inbox page. The page is the only client, so this is no part of the gateway's contract. */
import type { Router } from 'express';
import { type InboxInstance, type InboxSession, RedeemRequest } from 'soundpost-contract/inbox';
import { newRouter } from 'soundpost-kit/http/routes';
import { unauthorized } from '../middleware/access.ts';
import { jsonBodyUpTo } from '../middleware/json-body.ts';
import type { GatewayServices } from '../services.ts';
import { chatViews, listMessages } from './chat-view.ts';
import { eventFeed } from './event-feed.ts';
import { peopleRoutes } from './people-routes.ts';

/** Anybody may ask for a session, so nobody is listened to for long. */
const MAX_REDEEM_BYTES = 4096;

export function inboxRoutes(services: GatewayServices): Router {
  const { viewers, sessions, log, inboxSessions, wrongKeys } = services;
  const router = newRouter({ isExact: false });
  router.use((_request, response, next) => {
    response.setHeader('Cache-Control', 'no-store');
    next();
  });

  router.post('/session', jsonBodyUpTo(MAX_REDEEM_BYTES), async (request, response) => {
    const parsed = RedeemRequest.safeParse(request.body);
    const session = await wrongKeys.guard(request, async () =>
      parsed.success ? inboxSessions.redeem(parsed.data.code) : undefined,
    );
    if (session === undefined) {
      throw unauthorized();
    }
    const answer: InboxSession = { session };
    response.status(201).json(answer);
  });

  router.use(viewers.require);
  router.get('/events', eventFeed(services));

  router.get('/instances', async (request, response) => {
    const all = await viewers.instances(request);
    const instances = (await sessions.states(all)).map(
      ({ instance, state, ownJid }): InboxInstance => ({
        id: instance.id,
        name: instance.name,
        transport: instance.transport,
        state,
        ownJid,
        readOnly: !sessions.hasOtherSide(instance),
      }),
    );
    response.json(instances);
  });

  router.get('/instances/:instance/chats/:jid/messages', async (request, response) => {
    const instance = await viewers.instance(request);
    response.json(await listMessages(instance, request.params.jid, log));
  });

  router.get('/instances/:instance/chats', async (request, response) => {
    const instance = await viewers.instance(request);
    response.json(await chatViews(instance, await sessions.of(instance), log));
  });

  router.use(peopleRoutes(services));
  return router;
}
