/** The table's rows as prom-client metrics, and their text for Prometheus. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type MetricRow, type MetricTable, metricTable, type Part } from './table.ts';

type MetricName = keyof MetricTable;

type Labels<Name extends MetricName> = {
  readonly [Label in keyof MetricTable[Name]['labels']]: MetricTable[Name]['labels'][Label] extends readonly (infer Value extends
    string)[]
    ? Value
    : string;
};
type NameOf<Type extends MetricRow['type']> = {
  [Name in MetricName]: MetricTable[Name]['type'] extends Type ? Name : never;
}[MetricName];

export class MetricRegistry {
  readonly #registry = new Registry();

  /** @param of the parts in this process; only their metrics exist */
  constructor(of: readonly Part[]) {
    for (const [name, row] of Object.entries<MetricRow>(metricTable)) {
      if (row.of.some((part) => of.includes(part))) this.#register(name, row);
    }
  }

  #register(name: string, { type, help, labels, buckets, zeros }: MetricRow): void {
    const settings = { name, help, labelNames: Object.keys(labels), registers: [this.#registry] };
    if (type === 'gauge') {
      new Gauge(settings);
    } else if (type === 'histogram') {
      const histogram = new Histogram({ ...settings, buckets: [...(buckets ?? [])] });
      for (const combination of combinations(Object.entries(labels))) histogram.zero(combination);
    } else {
      const counter = new Counter(settings);
      for (const combination of zeros ?? combinations(Object.entries(labels))) counter.inc(combination, 0);
    }
  }

  /** Undefined if no part in this process reports it. */
  #metric<Kind>(kind: abstract new (...args: never[]) => Kind, name: MetricName): Kind | undefined {
    const metric: unknown = this.#registry.getSingleMetric(name);
    return metric instanceof kind ? metric : undefined;
  }

  /** Adds to a counter. */
  count<Name extends NameOf<'counter'>>(name: Name, labels: Labels<Name>, value = 1): void {
    this.#metric(Counter, name)?.inc(labels as Record<string, string>, value);
  }

  observe<Name extends NameOf<'histogram'>>(name: Name, labels: Labels<Name>, value: number): void {
    this.#metric(Histogram, name)?.observe(labels as Record<string, string>, value);
  }

  set<Name extends NameOf<'gauge'>>(name: Name, labels: Labels<Name>, value: number): void {
    this.#metric(Gauge, name)?.set(labels as Record<string, string>, value);
  }

  /** Adds to a gauge; @param by may be negative */
  shift<Name extends NameOf<'gauge'>>(name: Name, labels: Labels<Name>, by: number): void {
    this.#metric(Gauge, name)?.inc(labels as Record<string, string>, by);
  }

  /** Resets a gauge, so that an unknown value is left out rather than old. */
  forget(name: NameOf<'gauge'>): void {
    this.#metric(Gauge, name)?.reset();
  }

  /** Adds prom-client's metrics of the Node process: memory, CPU, event loop. Call this once. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

/** All combinations of listed label values; none if one label's values are not listed. */
function combinations(labels: [string, readonly string[] | string][]): Record<string, string>[] {
  return labels.reduce<Record<string, string>[]>(
    (sofar, [label, values]) =>
      typeof values === 'string'
        ? []
        : sofar.flatMap((labelled) => values.map((value) => ({ ...labelled, [label]: value }))),
    [{}],
  );
}
