/**
 * Traces, as the parts of the service see them: handed in as a logger is. Without a collector every call does nothing but what it is asked to
 * run; what is behind it with one is in `open-telemetry.ts`.
 */

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** Adds what is known only later. */
type Note = (attributes: Attributes) => void;

export interface Tracing {
  /** Runs the work as a span, a child of the one that is active; what the work does is its child in turn. */
  span<Result>(
    name: string,
    attributes: Attributes,
    work: (note: Note) => Promise<Result>,
    kind?: 'client' | 'internal',
  ): Promise<Result>;
  /** A span that nothing becomes a child of. @returns ends it; to be called once */
  begin(name: string, attributes: Attributes): (ending: Attributes) => void;
  /**
   * What a request takes along of the active span (W3C Trace Context). Ours get all of it; a receiver of somebody else's only the ids, since `tracestate` may
   * say what our caller's systems wrote there.
   */
  headersFor(receiver: 'ours' | 'foreign'): Record<string, string>;
}

export const noTracing: Tracing = {
  span: (_name, _attributes, work) => work(() => undefined),
  begin: () => () => undefined,
  headersFor: () => ({}),
};
