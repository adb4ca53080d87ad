/** What package.json says: it lies beside `src` in a checkout, and beside `dist` in the package that is made of it. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const Manifest = z.object({ version: z.string(), engines: z.object({ node: z.string().startsWith('>=') }) });

/** Not imported: the compiler would want to have it among the sources. */
const { version, engines } = Manifest.parse(
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')),
);

export { version };

/** The least Node that is supported, such as `22.22`. */
export const leastNode = engines.node.slice('>='.length);
