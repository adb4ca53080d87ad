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
import { referenceFiles } from '../src/process/config.ts';
import { documents } from './openapi-documents.ts';

const projectFolder = resolve(import.meta.dirname, '..');
const outDir = resolve(process.argv[2] ?? join(projectFolder, 'site'));

await build(join(projectFolder, 'docs'), { outDir });

const references = {
  api: { title: 'Soundpost API', document: documents.api },
  gateway: { title: 'Soundpost messaging gateway', document: documents.gateway },
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
