/** Where in a body a fault of a schema is, such as `jobs[3].output.bitrate`; empty for the body itself. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : `${text}${text && '.'}${String(part)}`),
    '',
  );
}
