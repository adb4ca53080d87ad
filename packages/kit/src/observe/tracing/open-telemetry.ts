/**
 * Traces through OpenTelemetry, sent by OTLP over HTTP. Loaded only where a collector is configured. Nothing that goes wrong here reaches the work that is traced: what the
 * collector does not take is dropped.
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
  /** Sent along with every export. */
  readonly headers: Readonly<Record<string, string>>;
  readonly sampler: SamplerSettings;
  /** Such as `soundpost-api`. */
  readonly serviceName: string;
  readonly version: string;
}

interface OpenTracing {
  readonly tracing: Tracing;
  /** For BullMQ: the context of a job is kept in the job. */
  readonly telemetry: QueueTelemetry;
  /** Makes a span of each request of an HTTP server. */
  readonly around: (handler: RequestListener) => Watched;
  /** Ids of the active trace, for a line of the log. */
  readonly idsForLog: () => { traceId?: string; spanId?: string };
  /** Where it is told that the collector takes nothing. */
  reportTo(logger: Logger): void;
  /** Sends what is left, for at most {@link CLOSE_MS}. */
  close(): Promise<void>;
}

const EXPORT_TIMEOUT_MS = 5000;
const EXPORT_EVERY_MS = 1000;
const CLOSE_MS = 3000;
/** What a collector that is away has to say is the same for hours. */
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
  // BullMQ's spans ask the API for all three.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  const tracer = provider.getTracer('soundpost', options.version);
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
      const report = (message: string): void => {
        if (Date.now() - reportedAtMs < REPORT_EVERY_MS) return;
        reportedAtMs = Date.now();
        logger.warn({ reason: message.slice(0, 300) }, 'traces could not be sent');
      };
      const nothing = (): void => undefined;
      const logs = { error: report, warn: report, info: nothing, debug: nothing, verbose: nothing };
      diag.setLogger(logs, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
    },
    async close() {
      await within(CLOSE_MS, () => provider.shutdown()).catch(() => undefined);
    },
  };
}

// BullMQ's own spans, through bullmq-otel, without what was worked on: results and errors hold
// names of files and numbers of people.

type QueueTelemetry = Pick<BullMQOtel, 'tracer' | 'contextManager'>;

type QueueSpan = ReturnType<BullMQOtel['tracer']['startSpan']>;

function queueTelemetry(): QueueTelemetry {
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

// Which traces are kept: as OTEL_TRACES_SAMPLER says (OpenTelemetry, "General SDK Configuration").

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
 * BullMQ makes a span of each look for a job, of each check for lost ones, of each pause: a trace each, of nothing. What is no request, no job and belongs to none is
 * left out.
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

// The interface that the parts know, on a tracer.

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
