/**
 * Rewrites what is made from the code in the documentation, and from the measurements. Each stands between two marks:
 *
 *     <!-- generated: configuration -->
 *     <!-- end of generated: configuration -->
 *
 * With --check it writes nothing and ends with 1 when a page differs from what it would write.
 * Takes the project's folder as argument; default: the current one.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { commandReference } from './command-reference.ts';
import {
  codecTable,
  configurationTable,
  containerTable,
  errorTable,
  formatTable,
  gatewayErrorTable,
  leftOutTable,
  routeTable,
} from './docs-tables.ts';
import { flawTable, unbuiltTable, vexDocument } from './ffmpeg-vex.ts';
import {
  destinationFieldTable,
  optionFieldTable,
  outputFieldTable,
  transcriptFieldTable,
  voiceMessageFieldTable,
  waveformFieldTable,
} from './field-tables.ts';
import { gatewayReference } from './gateway-reference.ts';
import { importTable, ownerTable } from './import-tables.ts';
import { metricTable } from './metric-table.ts';
import { machineTable, performancePlot, performanceTable } from './performance-page.ts';
import { transportTable } from './transport-table.ts';

/** By page: the tables that it has to hold. */
const pages: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  'docs/reference/api.md': {
    formats: formatTable,
    routes: routeTable,
    output: outputFieldTable,
    waveform: waveformFieldTable,
    transcript: transcriptFieldTable,
    options: optionFieldTable,
    destination: destinationFieldTable,
    'voice-message': voiceMessageFieldTable,
  },
  'docs/architecture.md': { imports: importTable, owners: ownerTable },
  'docs/reference/command-line.md': { commands: commandReference },
  'docs/reference/configuration.md': { configuration: configurationTable },
  'docs/gateway.md': { transports: transportTable },
  'docs/inputs.md': { containers: containerTable, codecs: codecTable, 'left-out': leftOutTable },
  'docs/reference/gateway.md': { gateway: gatewayReference },
  'docs/reference/metrics.md': { metrics: metricTable },
  'docs/performance.md': { performance: performanceTable, machines: machineTable },
  'SECURITY.md': { flaws: flawTable, 'not-built': unbuiltTable },
  'docs/reference/errors.md': { errors: errorTable, 'gateway-errors': gatewayErrorTable },
};

/** Files that are made as a whole. */
const files: Readonly<Record<string, () => string>> = {
  'docs/images/performance.svg': performancePlot,
  'ffmpeg.openvex.json': vexDocument,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean', default: false } },
});
const folder = positionals[0] ?? '.';

for (const [page, tables] of Object.entries(pages)) {
  const before = await readFile(join(folder, page), 'utf8');
  const after = Object.entries(tables).reduce(
    (text, [name, make]) => replaceTable(page, text, name, make()),
    before,
  );
  await settle(page, before, after);
}
for (const [file, make] of Object.entries(files)) {
  await settle(file, await readFile(join(folder, file), 'utf8').catch(() => ''), make());
}

async function settle(page: string, before: string, after: string): Promise<void> {
  if (before === after) {
    return;
  }
  if (values.check) {
    process.stdout.write(`${page} is not what the code says: run node script/docs.ts\n`);
    process.exitCode = 1;
  } else {
    await writeFile(join(folder, page), after);
    process.stdout.write(`${page} rewritten\n`);
  }
}

function replaceTable(page: string, text: string, name: string, table: string): string {
  const begin = `<!-- generated: ${name} -->\n`;
  const end = `<!-- end of generated: ${name} -->`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  if (from < 0 || to < 0) {
    throw new Error(`${page} has no marks for the table "${name}": add "${begin.trim()}" and "${end}"`);
  }
  return `${text.slice(0, from + begin.length)}${table}\n${text.slice(to)}`;
}
