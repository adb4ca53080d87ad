/**
 * Traces as the parts of the service use them, passed in like a logger. Without a collector, calls
 * only run their work; `open-telemetry.ts` has the other case.
 */

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** Adds attributes that are known only later. */
type Note = (attributes: Attributes) => void;

export interface Tracing {
  /** Runs the work as a span, a child of the active one and the parent of the work's own spans. */
  span<Result>(
    name: string,
    attributes: Attributes,
    work: (note: Note) => Promise<Result>,
    kind?: 'client' | 'internal',
  ): Promise<Result>;
  /** A span without children. @returns a function that ends it; call it once */
  begin(name: string, attributes: Attributes): (ending: Attributes) => void;
  /**
   * Headers of the active span (W3C Trace Context). Our services get all of them; others only the
   * ids, since `tracestate` may have data of the caller's systems.
   */
  headersFor(receiver: 'ours' | 'foreign'): Record<string, string>;
}

export const noTracing: Tracing = {
  span: (_name, _attributes, work) => work(() => undefined),
  begin: () => () => undefined,
  headersFor: () => ({}),
};
