/** `GET /inbox/api/events`: what happens, as Server-Sent Events (WHATWG HTML, 9.2). */
import type { RequestHandler, Response } from 'express';
import type { LiveEvent } from 'soundpost-chat/event-stream';
import type { EventReader } from '../event-reader.ts';
import type { Viewers, Visible } from './viewer.ts';

interface EventFeedOptions {
  readonly viewers: Viewers;
  readonly events: EventReader;
  /** Aborted when the gateway stops: open feeds end, and pages come back to whoever follows. */
  readonly closing: AbortSignal;
}

/** Proxies close what is silent for longer; also how late a withdrawn key is noticed. */
const HEARTBEAT_MS = 15_000;
const STREAM_ID = /^\d{1,20}-\d{1,20}$/;

export function eventFeed({ viewers, events, closing }: EventFeedOptions): RequestHandler {
  return async (request, response) => {
    const visible = viewers.visibleTo(request);
    response.status(200).set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      // nginx would hold the events back.
      'X-Accel-Buffering': 'no',
    });
    const waiting: LiveEvent[] = [];
    let live = false;
    // Listening begins before the replay, so that nothing falls between the two.
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

function send(response: Response, event: LiveEvent, visible: Visible): void {
  if (visible !== 'all' && !visible.has(event.instanceId)) {
    return;
  }
  // The envelope is one line of JSON, so it needs no splitting into several data lines.
  response.write(
    `id: ${event.id}\nevent: ${event.event}\ndata: {"instanceId":${JSON.stringify(event.instanceId)},"envelope":${event.envelope}}\n\n`,
  );
}
