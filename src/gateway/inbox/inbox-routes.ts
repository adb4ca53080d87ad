/** Data for the inbox page, its only client; not part of the gateway's contract. */

import { existsSync } from 'node:fs';
import type { RequestHandler, Response, Router } from 'express';
import type { LiveEvent } from 'soundpost-chat/event-stream';
import type { Instance } from 'soundpost-chat/instances';
import type { LoggedMessage, MessageLog } from 'soundpost-chat/message-log';
import type { Session } from 'soundpost-chat/transport';
import {
  type InboxChat,
  type InboxInstance,
  type InboxMessage,
  type InboxSession,
  RedeemRequest,
} from 'soundpost-contract/inbox';
import { newRouter } from 'soundpost-kit/http/routes';
import { filesIn, staticFiles } from 'soundpost-kit/http/static-files';
import { listChats, messagesOf } from '../chat-records.ts';
import type { EventReader } from '../event-reader.ts';
import { unauthorized } from '../middleware/access.ts';
import { jsonBodyUpTo } from '../middleware/error-answer.ts';
import type { GatewayServices } from '../services.ts';
import { peopleRoutes } from './people-routes.ts';
import type { Viewers } from './viewer.ts';

/** Anyone can request a session, so its body is small. */
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
    const session = await sessions.of(instance);
    const messages = await messagesOf(instance, session, request.params.jid, PAGE_MESSAGES, log);
    response.json(messages.map(messageView));
  });

  router.get('/instances/:instance/chats', async (request, response) => {
    const instance = await viewers.instance(request);
    response.json(await chatViews(instance, await sessions.of(instance), log));
  });

  router.use(peopleRoutes(services));
  return router;
}

// Data that the inbox page shows of chats and messages.

/** Messages shown of a chat. */
const PAGE_MESSAGES = 200;

/** Chats with messages first, newest at the top; then the rest of the address book. */
async function chatViews(instance: Instance, session: Session, log: MessageLog): Promise<InboxChat[]> {
  const chats = await listChats(instance, session, log);
  return Promise.all(
    chats.map(async (chat) => {
      const [last] = await messagesOf(instance, session, chat.jid, 1, log);
      return { ...chat, lastMessage: last === undefined ? null : messageView(last) };
    }),
  );
}

function messageView({
  key,
  authorJid,
  authorName,
  message,
  context,
  status,
  edited,
  timestampSeconds,
}: LoggedMessage): InboxMessage {
  return {
    key,
    ...(authorJid === undefined ? {} : { authorJid }),
    ...(authorName === undefined ? {} : { authorName }),
    message,
    context,
    status,
    edited,
    timestampSeconds,
  };
}

// `GET /inbox/api/events`: live events, as Server-Sent Events (WHATWG HTML, 9.2).

interface EventFeedOptions {
  readonly viewers: Viewers;
  readonly events: EventReader;
  /** Aborted when the gateway stops: feeds end, and pages reconnect to its successor. */
  readonly closing: AbortSignal;
}

/** Proxies close connections silent for longer; also the delay to notice a revoked key. */
const HEARTBEAT_MS = 15_000;
const STREAM_ID = /^\d{1,20}-\d{1,20}$/;

function eventFeed({ viewers, events, closing }: EventFeedOptions): RequestHandler {
  return async (request, response) => {
    const visible = viewers.visibleTo(request);
    response.status(200).set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      // nginx would buffer the events.
      'X-Accel-Buffering': 'no',
    });
    const waiting: LiveEvent[] = [];
    let live = false;
    // Listening starts before the replay, so no event is missed.
    const stop = events.listen((event) => {
      if (live) {
        send(response, event, visible);
      } else {
        waiting.push(event);
      }
    });
    const heartbeat = setInterval(async () => {
      const still = await viewers.identify(request).catch(() => visible);
      if (still === undefined) {
        response.end();
      } else {
        response.write(': still here\n\n');
      }
    }, HEARTBEAT_MS);
    const end = (): void => {
      response.end();
    };
    closing.addEventListener('abort', end, { once: true });
    response.once('close', () => {
      stop();
      clearInterval(heartbeat);
      closing.removeEventListener('abort', end);
    });
    response.write('retry: 1000\n\n');
    const seen = request.get('last-event-id') ?? '';
    const missed = STREAM_ID.test(seen) ? await events.since(seen) : [];
    const replayed = new Set(missed.map(({ id }) => id));
    for (const event of [...missed, ...waiting.filter(({ id }) => !replayed.has(id))]) {
      send(response, event, visible);
    }
    live = true;
  };
}

function send(response: Response, event: LiveEvent, visible: ReturnType<Viewers['visibleTo']>): void {
  if (visible !== 'all' && !visible.has(event.instanceId)) {
    return;
  }
  // The envelope is a single line of JSON and needs a single data line.
  response.write(
    `id: ${event.id}\nevent: ${event.event}\ndata: {"instanceId":${JSON.stringify(event.instanceId)},"envelope":${event.envelope}}\n\n`,
  );
}

// Files of the inbox page, built from web/inbox by `script/build-web.ts`. Their content comes from
// the data routes.

const PAGE = new URL('../../../web/dist/inbox/', import.meta.url);

/** @throws if the page has not been built */
export function inboxPage(): Router {
  if (!existsSync(PAGE)) {
    throw new Error('web/dist is missing, which the voice inbox is served from: script/bootstrap builds it');
  }
  const router = newRouter({ isExact: false });
  const files = new Map(filesIn(PAGE, ''));
  const page = staticFiles(new Map([['', new URL('index.html', PAGE)]]));
  router.get('/', (request, response, next) => {
    // The page uses relative addresses, to work below any path; a trailing slash would break them.
    if (/\/inbox\/(\?|$)/.test(request.originalUrl)) {
      const query = request.originalUrl.split('?')[1];
      response.redirect(308, `../inbox${query === undefined ? '' : `?${query}`}`);
      return;
    }
    return page(request, response, next);
  });
  router.use(staticFiles(files));
  return router;
}
