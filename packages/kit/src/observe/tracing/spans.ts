/** The interface that the parts know, on a tracer. */
import {
  type Context,
  context,
  defaultTextMapSetter,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Tracing } from './tracing.ts';

export function spansOf(tracer: Tracer): Tracing {
  return {
    async span(name, attributes, work, kind = 'internal') {
      const options = {
        attributes: { ...attributes },
        kind: SpanKind[kind === 'client' ? 'CLIENT' : 'INTERNAL'],
      };
      return tracer.startActiveSpan(name, options, async (span) => {
        try {
          return await work((more) => span.setAttributes({ ...more }));
        } catch (error) {
          markFailed(span, error);
          throw error;
        } finally {
          span.end();
        }
      });
    },
    begin(name, attributes) {
      const span = tracer.startSpan(name, { attributes: { ...attributes } });
      return (ending) => span.setAttributes({ ...ending }).end();
    },
    headersFor(receiver) {
      const headers = headersOf(context.active());
      return receiver === 'ours' || headers.traceparent === undefined
        ? headers
        : { traceparent: headers.traceparent };
    },
  };
}

/** What kind of error it was; its words may speak of addresses and names. */
function markFailed(span: Span, error: unknown): void {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const type = typeof code === 'string' ? code : error instanceof Error ? error.name : 'unknown';
  span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR });
}

function headersOf(active: Context): Record<string, string> {
  const headers: Record<string, string> = {};
  if (trace.getSpanContext(active) !== undefined) {
    propagation.inject(active, headers, defaultTextMapSetter);
  }
  return headers;
}
