/** What a check is, and how all of them are run: side by side, each within its time, none able to break another. */

import { styleText } from 'node:util';
import { within } from 'soundpost-base/deadline';

/** `fault`: the service does not start, or does not do its work. `warning`: it does, but not as well or as safely as it could. */
const verdicts = ['ok', 'warning', 'fault'] as const;
type Verdict = (typeof verdicts)[number];

export interface Finding {
  readonly verdict: Verdict;
  /** What was found, one line. */
  readonly found: string;
  /** What to do about it, one line. */
  readonly remedy?: string | undefined;
  /** For a shell of this system: mends it, or is the next step towards it. */
  readonly command?: string | undefined;
}

export interface Check {
  /** What is looked at, such as `Redis`. */
  readonly name: string;
  /** Rejects only when the check itself is at fault; what it looks at being broken is a finding. */
  run(): Promise<readonly Finding[]>;
}

interface Row extends Finding {
  readonly check: string;
}

/** @param limitMs of each check; what has not ended by then is told as a fault, and left to itself */
export async function runChecks(checks: readonly Check[], limitMs: number): Promise<Row[]> {
  const found = await Promise.all(
    checks.map(async ({ name, run }) =>
      (await settled(run, limitMs)).map((row) => ({ check: name, ...row })),
    ),
  );
  return found.flat();
}

async function settled(run: Check['run'], limitMs: number): Promise<readonly Finding[]> {
  const late = new Error(`no answer within ${limitMs / 1000} s: it hangs`);
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

// Versions as programs tell them.

/** The first two numbers, `5.1.9-0+deb12u1` and `n5.1` alike; undefined of a build that has none, such as `N-109468-gd39b34123d`. */
export function numbersOf(version: string): readonly [major: number, minor: number] | undefined {
  const [, major, minor] = /^[nv]?(\d+)\.(\d+)/.exec(version) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

/** @param least such as `5.1` */
export function isOlder(version: string, least: string): boolean {
  const [[major, minor] = [0, 0], [leastMajor, leastMinor] = [0, 0]] = [numbersOf(version), numbersOf(least)];
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}

// The rows as somebody reads them: with marks and colours on a terminal, plain lines in a pipe, or
// JSON.

const MARKS: Readonly<Record<Row['verdict'], { mark: string; style: 'green' | 'yellow' | 'red' }>> = {
  ok: { mark: '✔', style: 'green' },
  warning: { mark: '!', style: 'yellow' },
  fault: { mark: '✘', style: 'red' },
};

/** `{verdict, checks: [{check, verdict, found, remedy?, command?}]}`; the verdict is the worst of them. */
export function asJson(rows: readonly Row[]): string {
  return JSON.stringify({ verdict: worstOf(rows), checks: rows }, null, 2);
}

/** @param onTerminal whether marks and colours are wanted; otherwise every line begins with the verdict's word */
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
  // NO_COLOR and FORCE_COLOR are styleText's to honour.
  return onTerminal ? styleText(MARKS[verdict].style, text, { stream: process.stdout }) : text;
}
