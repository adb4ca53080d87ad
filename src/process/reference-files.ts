/** What the page at /docs of both servers loads. Here and not in the kit: it lies beside `src`, or beside `dist`. */
import type { StaticSource } from 'soundpost-kit/http/static-files';

const WEB = new URL('../../web/', import.meta.url);

/** By their paths below /docs; script/scalar fetches the first, script/build-web.ts makes the second. */
export const referenceFiles: ReadonlyMap<string, StaticSource> = new Map([
  ['scalar.js', new URL('reference/scalar.js', WEB)],
  ['reference.js', new URL('dist/reference/reference.js', WEB)],
]);
