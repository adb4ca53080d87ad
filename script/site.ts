/**
 * Makes the site of the documentation: the pages by VitePress, which fails on a link to no page, and beside them the references
 * of both servers, from the same documents as their own `/docs` (docs/decisions/0022-docs-site.md).
 *
 *     node script/site.ts [folder, default: site]
 *
 * Needs nothing but the project: no network, no service.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { build } from 'vitepress';
import { routes } from '../src/api/app.ts';
import { apiReference } from '../src/api/routes/docs.ts';
import { gatewayReference } from '../src/gateway/routes/docs.ts';
import { keyedRoutes } from '../src/gateway/routes/routes.ts';
import type { GatewayServices } from '../src/gateway/services.ts';

const projectFolder = resolve(import.meta.dirname, '..');
const outDir = resolve(process.argv[2] ?? join(projectFolder, 'site'));

/** What of its services the table of routes looks at before a request comes. */
const gatewayServices: Partial<GatewayServices> = { brands: ['Messenger'] };

await build(join(projectFolder, 'docs'), { outDir });

const references = {
  api: apiReference(routes, 'https://soundpost.example'),
  gateway: gatewayReference(
    keyedRoutes(gatewayServices as GatewayServices),
    'https://gateway.soundpost.example',
  ),
};
for (const [name, { document, page }] of Object.entries(references)) {
  const folder = join(outDir, 'reference', name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'index.html'), page.html);
  await writeFile(join(folder, 'openapi.json'), document);
}
