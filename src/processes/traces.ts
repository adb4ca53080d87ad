/** Traces where a collector is configured; without one nothing of OpenTelemetry's SDK is loaded (of its API prom-client loads some). */
import type { Config } from '../config.ts';
import type { MediaTools } from '../media/run.ts';
import type { Observer } from '../metrics/observer.ts';
import type { Part } from '../metrics/table.ts';
import type { OpenTracing } from '../tracing/open-telemetry.ts';
import { noTracing, type Tracing } from '../tracing/tracing.ts';

/** What there is besides spans is there only with a collector. */
export type Traces = Pick<OpenTracing, 'tracing'> & Partial<OpenTracing>;

/** @param of what the process is made of: its name in the traces */
export async function openTraces(config: Config, of: readonly Part[], version: string): Promise<Traces> {
  const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined || of.length === 0) {
    return { tracing: noTracing };
  }
  const { openTracing } = await import('../tracing/open-telemetry.ts');
  return openTracing({
    endpoint,
    headers: config.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    sampler: { name: config.OTEL_TRACES_SAMPLER, ratio: config.OTEL_TRACES_SAMPLER_ARG },
    serviceName: of.length === 1 ? `soundpost-${of[0]}` : 'soundpost',
    version,
  });
}

/** Who is told of runs of ffmpeg: the metrics, and the trace of the job. */
export function toolWatch({ toolStarted }: Observer, tracing: Tracing): NonNullable<MediaTools['watch']> {
  return (tool) => {
    const count = toolStarted(tool);
    const end = tracing.begin(tool, {});
    return (ending) => {
      count(ending);
      end({ 'soundpost.tool.ending': ending });
    };
  };
}
