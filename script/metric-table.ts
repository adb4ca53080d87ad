/** The table of docs/reference/metrics.md, made from the one that the registry is made from. */
import { type MetricRow, metricTable as rows } from 'soundpost-kit/observe/metrics/table';
import { code, markdownTable } from './markdown-table.ts';

/** More values than this are counted instead of listed. */
const LISTED = 10;

export function metricTable(): string {
  return markdownTable(
    ['Metric', 'Type', 'Labels', 'Reported by', 'What it is'],
    Object.entries<MetricRow>(rows).map(([name, { type, labels, of, help }]) => [
      `<a id="${name}"></a>${code(name)}`,
      type,
      Object.entries(labels).map(labelText).join('; ') || '–',
      of.length === 3 ? 'all' : of.join(', '),
      help,
    ]),
  );
}

function labelText([label, values]: [string, readonly string[] | string]): string {
  const told =
    typeof values === 'string'
      ? values
      : values.length > LISTED
        ? `${values.slice(0, 2).map(code).join(', ')} … (${values.length})`
        : values.map(code).join(', ');
  return `${code(label)}: ${told}`;
}
