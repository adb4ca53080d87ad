/** The tables and the plot of docs/performance.md, made of what was measured. */
import { figureOf, grouped, isReached, median, type Reach, type Row } from '../bench/measuring/comparison.ts';
import { type Machine, readResults, rowScripts } from '../bench/measuring/results.ts';
import { code, markdownTable } from './markdown-table.ts';

const results = readResults('.');

export function performanceTable(): string {
  const rows = results.flatMap(({ script, result }) => result.rows.map((row) => ({ script, row })));
  const waiting = rowScripts.filter((script) => results.every((result) => result.script !== script));
  const names = waiting.map((script) => code(`bench/${script}.ts`)).join(', ');
  const table = markdownTable(
    ['What', 'Against', 'Theirs', 'Ours', 'Ratio', 'Target', 'Runs', 'Also measured', 'Script'],
    rows.map(({ script, row }) => [
      row.what,
      row.against ?? '–',
      row.theirs.length === 0 ? '–' : amount(median(row.theirs), row.unit),
      amount(median(row.ours), row.unit, row.theirs.length === 0 ? row.reach : null),
      row.theirs.length === 0 ? '–' : ratio(row),
      row.reach === null ? '–' : promise(row.reach, figureOf(row), row.theirs.length === 0 ? row.unit : ''),
      String(row.ours.length),
      besides(row),
      code(`bench/${script}.ts`),
    ]),
  );
  return waiting.length === 0
    ? table
    : `${table}\n\nNot yet measured five times on a quiet machine: ${names}.`;
}

export function machineTable(): string {
  const kinds = new Map<
    string,
    { machine: Machine; scripts: string[]; days: Set<string>; loads: number[] }
  >();
  for (const { script, result } of results) {
    const name = JSON.stringify(result.machine);
    const kind = kinds.get(name) ?? { machine: result.machine, scripts: [], days: new Set(), loads: [] };
    kind.scripts.push(script);
    kind.days.add(result.measuredOn);
    kind.loads.push(result.loadBefore);
    kinds.set(name, kind);
  }
  return markdownTable(
    ['Processor', 'Memory', 'Node', 'ffmpeg', 'Redis', 'Date', 'Highest load average before', 'Scripts'],
    [...kinds.values()].map(({ machine, scripts, days, loads }) => [
      `${machine.processor}, ${machine.cores} cores`,
      `${machine.memoryGib} GiB`,
      machine.node,
      machine.ffmpeg,
      machine.redis,
      [...days].toSorted().join(', '),
      String(Math.max(...loads)),
      scripts.join(', '),
    ]),
  );
}

function amount(value: number, unit: string, reach: Reach | null = null): string {
  const isCount = unit === '' && Number.isInteger(value);
  const digits = isCount || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${grouped(value, digitsFor(value, digits, reach))} ${unit}`.trim();
}

/** More than the usual ones where the rounded figure would reach its target and the figure does not, or the reverse. */
function digitsFor(value: number, usual: number, reach: Reach | null): number {
  const isRight =
    reach === null || isReached(Number(value.toFixed(usual)), reach) === isReached(value, reach);
  return isRight ? usual : digitsFor(value, usual + 1, reach);
}

/** The median of the pairs, and how far they lie apart. */
function ratio({ ours, theirs, reach }: Row): string {
  const ratios = ours.map((value, nth) => value / (theirs[nth] ?? Number.NaN));
  return `${short(median(ratios), reach)} (${short(Math.min(...ratios))} … ${short(Math.max(...ratios))})`;
}

function short(value: number, reach: Reach | null = null): string {
  return value.toFixed(digitsFor(value, value < 0.1 ? 3 : 2, reach));
}

function promise(reach: Reach, value: number, unit: string): string {
  const limit = 'atMost' in reach ? `≤ ${reach.atMost}` : `≥ ${reach.atLeast}`;
  return `${`${limit} ${unit}`.trim()}: ${isReached(value, reach) ? 'yes' : '**no**'}`;
}

function besides({ remarks }: Row): string {
  return remarks
    .map(({ what, value, unit, reach }) => {
      const promised = reach === null ? '' : ` (${promise(reach, value, '')})`;
      return `${what}: ${amount(value, unit, reach)}${promised}`;
    })
    .join('; ');
}

const LINE = 34;
const LEFT = 20;
const WIDTH = 860;
/** Where the bar of the baseline ends; what takes longer goes on to the right of it. */
const ONE = 640;

/** Bars of the ratios, each beside that of what it was compared with. */
export function performancePlot(): string {
  const rows = results.flatMap(({ result }) => result.rows).filter(({ theirs }) => theirs.length > 0);
  const height = 40 + rows.length * (LINE + 14);
  const scale = (value: number): number => Math.min(WIDTH - 2 * LEFT, (ONE - LEFT) * value);
  const bars = rows.map((row, nth) => {
    const y = 40 + nth * (LINE + 14);
    const value = figureOf(row);
    const kind = row.reach === null ? 'plain' : isReached(value, row.reach) ? 'good' : 'bad';
    const mark = row.reach === null ? null : 'atMost' in row.reach ? row.reach.atMost : row.reach.atLeast;
    const label = `${short(value, row.reach)}${row.unit.includes('/') ? ' of the rate' : ' of the time'}`;
    return [
      `<text x="${LEFT}" y="${y}" class="what">${escapeXml(row.what.replaceAll('`', ''))}</text>`,
      `<rect x="${LEFT}" y="${y + 6}" width="${ONE - LEFT}" height="16" class="base"/>`,
      `<rect x="${LEFT}" y="${y + 6}" width="${Math.max(1, scale(value)).toFixed(1)}" height="16" class="${kind}"/>`,
      mark === null
        ? ''
        : `<line x1="${(LEFT + scale(mark)).toFixed(1)}" x2="${(LEFT + scale(mark)).toFixed(1)}" y1="${y + 2}" y2="${y + 26}" class="mark"/>`,
      `<text x="${(LEFT + Math.max(scale(value), ONE - LEFT) + 8).toFixed(1)}" y="${y + 18}" class="value">${label}</text>`,
    ].join('\n');
  });
  const style =
    'text{font:13px sans-serif;fill:#24292f}.value{font-weight:600}.base{fill:#d0d7de}.good{fill:#2da44e}.bad{fill:#bf8700}.plain{fill:#0969da}.mark{stroke:#24292f;stroke-width:2}';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Soundpost against its baselines">`,
    `<style>${style}</style>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="${LEFT}" y="18">grey: baseline; green: target reached; amber: target missed; black mark: target; blue: no target</text>`,
    ...bars,
    '</svg>',
    '',
  ].join('\n');
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
