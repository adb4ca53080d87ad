/** Which traces are kept: as OTEL_TRACES_SAMPLER says (OpenTelemetry, "General SDK Configuration"). */
import { SpanKind, trace } from '@opentelemetry/api';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';

export interface SamplerSettings {
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

export function samplerOf({ name, ratio }: SamplerSettings): Sampler {
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
