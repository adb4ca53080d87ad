/** Text for terminals: tables, fields, untrusted names, and words to paste into a shell. */

/** Columns fit their widest text and cut nothing, for grep and cut; without rows only headings. */
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

/** A line for each field with a value. */
export function fields(rows: readonly (readonly [name: string, value: string | null | undefined])[]): string {
  const known = rows.flatMap(([name, value]) => (value ? [[name, printable(value)] as const] : []));
  const width = Math.max(...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

/** Names are untrusted: they must not move the cursor. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, '�');
}
