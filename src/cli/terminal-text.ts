/** Text for a terminal: tables, fields, names of strangers, and words that can be pasted into a shell. */

/** Columns as wide as what stands in them, nothing cut, so that grep and cut find whole words; the headings alone where there are no rows. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings, ...rows].map((row) => row.map(printable));
  const widths = headings.map((_, column) => Math.max(...lines.map((row) => row[column]?.length ?? 0)));
  return lines
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** One line a field that has a value. */
export function fields(rows: readonly (readonly [name: string, value: string | null | undefined])[]): string {
  const known = rows.flatMap(([name, value]) => (value ? [[name, printable(value)] as const] : []));
  const width = Math.max(...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

/** Names come from strangers: nothing of them may move the cursor. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, '�');
}

/** As a word of a POSIX shell, quoted where it has to be. */
export function shellWord(text: string): string {
  return /^[\w@=./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
