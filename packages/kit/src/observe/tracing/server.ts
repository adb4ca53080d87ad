/** A span for each request of an HTTP server, in the caller's trace if there is one. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import {
  context,
  defaultTextMapGetter,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
} from '@opentelemetry/semantic-conventions';
import { routeTemplate, type Watched } from '../../http/watched.ts';

/** Polled by machines all day. */
const UNTRACED = /^\/(metrics|health\/live|health\/ready)(\?|$)/;

export function traced(handler: RequestListener, tracer: Tracer): Watched {
  const spans = new WeakMap<ServerResponse, Span>();
  return {
    handle(request, response) {
      const { url = '', method = 'GET' } = request;
      if (UNTRACED.test(url)) {
        handler(request, response);
        return;
      }
      const caller = propagation.extract(context.active(), request.headers, defaultTextMapGetter);
      const span = tracer.startSpan(method, { kind: SpanKind.SERVER }, caller);
      const active = trace.setSpan(caller, span);
      spans.set(response, span);
      // Listeners on the end of the answer write logs too.
      context.bind(active, response);
      context.with(active, () => handler(request, response));
    },
    ended(request, response) {
      const span = spans.get(response);
      if (span !== undefined) end(span, request, response);
    },
  };
}

function end(span: Span, request: IncomingMessage, response: ServerResponse): void {
  const { method = 'GET' } = request;
  const route = routeTemplate(request);
  span.updateName(route === undefined ? method : `${method} ${route}`);
  span.setAttributes({
    [ATTR_HTTP_REQUEST_METHOD]: method,
    ...(route === undefined ? {} : { [ATTR_HTTP_ROUTE]: route }),
    'soundpost.request.id': requestIdOf(response),
    'soundpost.answered': response.writableFinished,
  });
  // If the caller left before the answer, the status is unknown.
  if (response.headersSent) {
    span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, response.statusCode);
    if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}

function requestIdOf(response: ServerResponse): string {
  return String(response.getHeader('x-request-id') ?? '');
}
