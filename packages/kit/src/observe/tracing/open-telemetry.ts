/**
 * Traces through OpenTelemetry, sent by OTLP over HTTP; loaded only with a collector. Failures
 * never affect the traced work: traces that the collector does not accept are dropped.
 */
import type { RequestListener } from 'node:http';
import { hostname } from 'node:os';
import {
  type Context,
  context,
  DiagLogLevel,
  defaultTextMapSetter,
  diag,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions';
import { BullMQOtel } from 'bullmq-otel';
import { within } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { Watched } from '../../http/watched.ts';
import { traced } from './server.ts';
import type { Tracing } from './tracing.ts';

interface TracingOptions {
  /** Base address of the collector; the traces go to `/v1/traces` under it. */
  readonly endpoint: string;
  /** Sent with every export. */
  readonly headers: Readonly<Record<string, string>>;
  readonly sampler: SamplerSettings;
  /** Such as `soundpost-api`. */
  readonly serviceName: string;
  readonly version: string;
}

interface OpenTracing {
  readonly tracing: Tracing;
  /** For BullMQ, which keeps a job's context in the job. */
  readonly telemetry: QueueTelemetry;
  /** Makes a span of each request of an HTTP server. */
  readonly around: (handler: RequestListener) => Watched;
  /** Ids of the active trace, for a log record. */
  readonly idsForLog: () => { traceId?: string; spanId?: string };
  /** Logs export failures here. */
  reportTo(logger: Logger): void;
  /** Sends pending traces, for at most {@link CLOSE_MS}. */
  close(): Promise<void>;
}

const EXPORT_TIMEOUT_MS = 5000;
const EXPORT_EVERY_MS = 1000;
const CLOSE_MS = 3000;
/** An unavailable collector repeats the same error for hours. */
const REPORT_EVERY_MS = 60_000;

export function openTracing(options: TracingOptions): OpenTracing {
  const exporter = new OTLPTraceExporter({
    url: `${options.endpoint}/v1/traces`,
    headers: { ...options.headers },
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      [ATTR_SERVICE_NAME]: options.serviceName,
      [ATTR_SERVICE_VERSION]: options.version,
      'service.instance.id': `${hostname()}:${process.pid}`,
    }),
    sampler: samplerOf(options.sampler),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        scheduledDelayMillis: EXPORT_EVERY_MS,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
      }),
    ],
  });
  // BullMQ's spans get all three from the API.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  const tracer = provider.getTracer('soundpost', options.version);
  let report = (_message: string): void => undefined;
  return {
    tracing: spansOf(tracer),
    telemetry: queueTelemetry(),
    around: (handler) => traced(handler, tracer),
    idsForLog() {
      const active = trace.getActiveSpan()?.spanContext();
      return active === undefined ? {} : { traceId: active.traceId, spanId: active.spanId };
    },
    reportTo(logger) {
      let reportedAtMs = 0;
      report = (message) => {
        if (Date.now() - reportedAtMs < REPORT_EVERY_MS) return;
        reportedAtMs = Date.now();
        logger.warn({ reason: message.slice(0, 300) }, 'traces could not be sent');
      };
      const nothing = (): void => undefined;
      const logs = { error: report, warn: report, info: nothing, debug: nothing, verbose: nothing };
      diag.setLogger(logs, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
    },
    async close() {
      const reason = () => new Error(`the collector did not answer within ${CLOSE_MS / 1000} s`);
      await within(CLOSE_MS, () => provider.shutdown(), { reason }).catch((error) => report(String(error)));
    },
  };
}

// BullMQ's own spans, through bullmq-otel, without payloads: results and errors hold file names and
// phone numbers.

type QueueTelemetry = Pick<BullMQOtel, 'tracer' | 'contextManager'>;

type QueueSpan = ReturnType<BullMQOtel['tracer']['startSpan']>;

function queueTelemetry(): QueueTelemetry {
  const { tracer, contextManager } = new BullMQOtel({ tracerName: 'bullmq' });
  const startSpan: typeof tracer.startSpan = (...options) => discreet(tracer.startSpan(...options));
  return {
    tracer: over(tracer, { startSpan }),
    // Work that lasts as long as the process must not join the trace that started it.
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

/** The same object with some members replaced. */
function over<Base extends object, Members extends object>(base: Base, members: Members): Base & Members {
  return Object.assign(Object.create(base) as Base, members);
}

// Which traces are kept: by OTEL_TRACES_SAMPLER (OpenTelemetry, "General SDK Configuration").

interface SamplerSettings {
  readonly name:
    | 'always_on'
    | 'always_off'
    | 'traceidratio'
    | 'parentbased_always_on'
    | 'parentbased_always_off'
    | 'parentbased_traceidratio';
  /** 0 … 1, of the samplers by ratio. */
  readonly ratio: number;
}

function samplerOf({ name, ratio }: SamplerSettings): Sampler {
  const byName: Readonly<Record<string, Sampler>> = {
    always_on: new AlwaysOnSampler(),
    always_off: new AlwaysOffSampler(),
    traceidratio: new TraceIdRatioBasedSampler(ratio),
  };
  const root = byName[name.replace('parentbased_', '')] ?? new AlwaysOnSampler();
  return withoutIdleTraces(name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root);
}

/**
 * BullMQ makes a span, and so an empty trace, of each poll, stalled check and pause. Drops internal
 * spans without a parent.
 */
function withoutIdleTraces(sampler: Sampler): Sampler {
  return {
    shouldSample(context, traceId, name, kind, attributes, links) {
      const isAlone = kind === SpanKind.INTERNAL && trace.getSpanContext(context) === undefined;
      return isAlone
        ? { decision: SamplingDecision.NOT_RECORD }
        : sampler.shouldSample(context, traceId, name, kind, attributes, links);
    },
    toString: () => `WithoutIdleTraces{${sampler}}`,
  };
}

// The parts' tracing interface, over a tracer.

function spansOf(tracer: Tracer): Tracing {
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

/** Records the error's type only; its message may have addresses and names. */
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
