/** What the page at /docs of both servers loads. Here and not in the kit: it lies beside `src`, or beside `dist`. */

const WEB = new URL('../../web/', import.meta.url);

/** By their paths below /docs; script/scalar fetches the first, script/build-web.ts makes the second. */
export const referenceFiles: ReadonlyMap<string, URL | string> = new Map([
  ['scalar.js', new URL('reference/scalar.js', WEB)],
  ['reference.js', new URL('dist/reference/reference.js', WEB)],
]);
