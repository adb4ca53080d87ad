/** The rows as somebody reads them: with marks and colours on a terminal, plain lines in a pipe, or JSON. */
import { styleText } from 'node:util';
import { type Row, verdicts } from './check.ts';

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
