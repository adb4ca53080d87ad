/** BullMQ's own spans, through bullmq-otel, without what was worked on: results and errors hold names of files and numbers of people. */
import { ROOT_CONTEXT } from '@opentelemetry/api';
import { BullMQOtel } from 'bullmq-otel';

export type QueueTelemetry = Pick<BullMQOtel, 'tracer' | 'contextManager'>;

type QueueSpan = ReturnType<BullMQOtel['tracer']['startSpan']>;

export function queueTelemetry(): QueueTelemetry {
  const { tracer, contextManager } = new BullMQOtel({ tracerName: 'bullmq' });
  const startSpan: typeof tracer.startSpan = (...options) => discreet(tracer.startSpan(...options));
  return {
    tracer: over(tracer, { startSpan }),
    // What runs for as long as the process must not be part of the trace that began it.
    contextManager: over(contextManager, { root: () => ROOT_CONTEXT }),
  };
}

function discreet(span: QueueSpan): QueueSpan {
  return over(span, {
    addEvent: (name: string) => span.addEvent(name),
    recordException(exception: unknown) {
      const type = exception instanceof Error ? exception.name : 'unknown';
      span.addEvent('exception', { 'exception.type': type });
    },
  });
}

/** The same object with some members of its own. */
function over<Base extends object, Members extends object>(base: Base, members: Members): Base & Members {
  return Object.assign(Object.create(base) as Base, members);
}
