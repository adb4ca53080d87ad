/** Runs checks in parallel, each within its time limit and unaffected by the others. */

import { styleText } from 'node:util';
import { within } from 'soundpost-base/deadline';

/** `fault`: the service does not start or work. `warning`: it works, but less well or safely. */
const verdicts = ['ok', 'warning', 'fault'] as const;
type Verdict = (typeof verdicts)[number];

export interface Finding {
  readonly verdict: Verdict;
  /** The finding, one line. */
  readonly found: string;
  /** What to do, one line. */
  readonly remedy?: string | undefined;
  /** A shell command that fixes it, or is the next step. */
  readonly command?: string | undefined;
}

export interface Check {
  /** The subject, such as `Redis`. */
  readonly name: string;
  /** Rejects only if the check itself fails; a broken subject is a finding. */
  run(): Promise<readonly Finding[]>;
}

interface Row extends Finding {
  readonly check: string;
}

/** @param limitMs of each check; an unfinished check is abandoned and reported as a fault */
export async function runChecks(checks: readonly Check[], limitMs: number): Promise<Row[]> {
  const found = await Promise.all(
    checks.map(async ({ name, run }) =>
      (await settled(run, limitMs)).map((row) => ({ check: name, ...row })),
    ),
  );
  return found.flat();
}

async function settled(run: Check['run'], limitMs: number): Promise<readonly Finding[]> {
  const late = new Error(`no answer within ${limitMs / 1000} s`);
  try {
    return await within(limitMs, run, { reason: () => late });
  } catch (error) {
    const found = error === late ? late.message : `could not be checked: ${messageOf(error)}`;
    return [{ verdict: 'fault', found }];
  }
}

/** On one line. */
export function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ').trim();
}

export function ok(found: string): Finding {
  return { verdict: 'ok', found };
}

// Versions as programs print them.

/** Major and minor of `5.1.9-0+deb12u1` or `n5.1`; undefined for `N-109468-gd39b34123d`. */
export function numbersOf(version: string): readonly [major: number, minor: number] | undefined {
  const [, major, minor] = /^[nv]?(\d+)\.(\d+)/.exec(version) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

/** @param least such as `5.1` */
export function isOlder(version: string, least: string): boolean {
  const [[major, minor] = [0, 0], [leastMajor, leastMinor] = [0, 0]] = [numbersOf(version), numbersOf(least)];
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}

// Prints the rows: with marks and colours on a terminal, as plain lines in a pipe, or as JSON.

const MARKS: Readonly<Record<Row['verdict'], { mark: string; style: 'green' | 'yellow' | 'red' }>> = {
  ok: { mark: '✔', style: 'green' },
  warning: { mark: '!', style: 'yellow' },
  fault: { mark: '✘', style: 'red' },
};

/** `{verdict, checks: [{check, verdict, found, remedy?, command?}]}`; `verdict`: the worst. */
export function asJson(rows: readonly Row[]): string {
  return JSON.stringify({ verdict: worstOf(rows), checks: rows }, null, 2);
}

/** @param onTerminal whether to use marks and colours; else each line starts with the verdict */
export function asText(rows: readonly Row[], onTerminal: boolean): string {
  const nameWidth = Math.max(...rows.map(({ check }) => check.length));
  const lines = rows.flatMap(({ check, verdict, found, remedy, command }) => {
    const label = onTerminal ? MARKS[verdict].mark : verdict.padEnd('warning'.length);
    const indent = ' '.repeat(label.length + nameWidth + 4);
    return [
      `${painted(label, verdict, onTerminal)}  ${check.padEnd(nameWidth)}  ${found}`,
      ...(remedy === undefined ? [] : [`${indent}${remedy}`]),
      ...(command === undefined ? [] : [`${indent}$ ${command}`]),
    ];
  });
  return [...lines, '', summary(rows)].join('\n');
}

export function worstOf(rows: readonly Row[]): Row['verdict'] {
  const worst = Math.max(0, ...rows.map(({ verdict }) => verdicts.indexOf(verdict)));
  return verdicts[worst] ?? 'ok';
}

function summary(rows: readonly Row[]): string {
  const count = (wanted: Row['verdict'], word: string): string => {
    const number = rows.filter(({ verdict }) => verdict === wanted).length;
    return `${number} ${word}${number === 1 ? '' : 's'}`;
  };
  return `${count('fault', 'fault')}, ${count('warning', 'warning')}`;
}

function painted(text: string, verdict: Row['verdict'], onTerminal: boolean): string {
  // styleText honours NO_COLOR and FORCE_COLOR.
  return onTerminal ? styleText(MARKS[verdict].style, text, { stream: process.stdout }) : text;
}
