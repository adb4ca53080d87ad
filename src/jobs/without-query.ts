/** Presigned addresses carry their secret in the query, so it is not shown. */
export function withoutQuery(url: string): string {
  const [base = ''] = url.split(/[?#]/, 1);
  return base;
}
