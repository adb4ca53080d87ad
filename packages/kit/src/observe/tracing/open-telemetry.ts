/**
 * Traces through OpenTelemetry, sent by OTLP over HTTP. Loaded only where a collector is configured. Nothing that goes wrong here reaches the work that is traced: what the
 * collector does not take is dropped.
 */
import type { RequestListener } from 'node:http';
import { hostname } from 'node:os';
import { context, DiagLogLevel, diag, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions';
import { within } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { Watched } from '../../http/watched.ts';
import { type QueueTelemetry, queueTelemetry } from './queue-telemetry.ts';
import { type SamplerSettings, samplerOf } from './sampler.ts';
import { traced } from './server.ts';
import { spansOf } from './spans.ts';
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

export interface OpenTracing {
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
