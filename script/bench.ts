/** Runs the named scripts of `bench/`, or all of them, and keeps what they measured in `bench/results`. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { Row } from '../bench/measuring/comparison.ts';
import {
  type Machine,
  type Result,
  type RowScript,
  resultFile,
  rowScripts,
} from '../bench/measuring/results.ts';

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !rowScripts.some((script) => script === name));
if (unknown.length > 0) {
  process.stderr.write(`there is no bench/${unknown[0]}.ts; there are ${rowScripts.join(', ')}\n`);
  process.exit(2);
}

const failed: string[] = [];
for (const script of rowScripts.filter((name) => asked.length === 0 || asked.includes(name))) {
  process.stderr.write(`\n${script}\n`);
  const rows = await measure(script);
  if (rows === null) failed.push(script);
  else await save(script, rows);
}
if (failed.length > 0) {
  process.stderr.write(`\nnot measured: ${failed.join(', ')}\n`);
  process.exitCode = 1;
}

async function measure(script: RowScript): Promise<Pick<Result, 'loadBefore' | 'rows'> | null> {
  const loadBefore = Number((loadavg()[0] ?? 0).toFixed(2));
  const child = spawn(process.execPath, [`bench/${script}.ts`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (child.exitCode !== 0) return null;
  const lines = said.split('\n').filter((line) => line.startsWith('{'));
  return { loadBefore, rows: lines.map((line) => Row.parse(JSON.parse(line))) };
}

async function save(script: RowScript, measured: Pick<Result, 'loadBefore' | 'rows'>): Promise<void> {
  const path = resultFile('.', script);
  const measuredOn = new Date().toISOString().slice(0, 10);
  const result: Result = { measuredOn, machine: machine(), ...measured };
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(result, rounded, 2)}\n`);
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(5)) : value;
}

function machine(): Machine {
  const version = (command: string, ...args: string[]): string =>
    /\d+\.\d+(\.\d+)?/.exec(execFileSync(command, args, { encoding: 'utf8' }))?.[0] ?? '';
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 1024 ** 3),
    node: process.versions.node,
    ffmpeg: version('ffmpeg', '-version'),
    redis: version('redis-server', '--version'),
  };
}
