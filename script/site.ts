/**
 * Makes the site of the documentation: the pages by VitePress, which fails on a link to no page, and beside them the references
 * of both servers, from the same documents as their own `/docs` (docs/decisions/0022-docs-site.md).
 *
 *     node script/site.ts [folder, default: site]
 *
 * Needs nothing but the project: no network, no service.
 */
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { referencePage } from 'soundpost-kit/http/api-reference';
import { build } from 'vitepress';
import { routes } from '../src/api/app.ts';
import { openApiDocument as apiDocument } from '../src/api/openapi/document.ts';
import { keyedRoutes } from '../src/gateway/app.ts';
import { openApiDocument as gatewayDocument } from '../src/gateway/openapi/document.ts';
import type { GatewayServices } from '../src/gateway/services.ts';
import { referenceFiles } from '../src/process/config.ts';

const projectFolder = resolve(import.meta.dirname, '..');
const outDir = resolve(process.argv[2] ?? join(projectFolder, 'site'));

/** What of its services the table of routes looks at before a request comes. */
const gatewayServices: Partial<GatewayServices> = { brands: ['Messenger'] };

await build(join(projectFolder, 'docs'), { outDir });

const references = {
  api: {
    title: 'Soundpost API',
    document: apiDocument(routes, 'https://soundpost.example'),
  },
  gateway: {
    title: 'Soundpost messaging gateway',
    document: gatewayDocument(
      keyedRoutes(gatewayServices as GatewayServices),
      'https://gateway.soundpost.example',
    ),
  },
};
for (const [name, { title, document }] of Object.entries(references)) {
  const folder = join(outDir, 'reference', name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'index.html'), referencePage(title, '../').body);
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(document));
}
for (const [path, source] of referenceFiles) {
  if (source instanceof URL) await copyFile(source, join(outDir, 'reference', path));
}
