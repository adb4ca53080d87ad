/**
 * The OpenAPI documents of the API and the gateway. Run, it writes them for a linter:
 *
 *   node script/openapi-documents.ts FOLDER      api.json and gateway.json
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { routes } from '../src/api/app.ts';
import { openApiDocument as apiDocument } from '../src/api/openapi/document.ts';
import { keyedRoutes } from '../src/gateway/app.ts';
import { openApiDocument as gatewayDocument } from '../src/gateway/openapi/document.ts';
import type { GatewayServices } from '../src/gateway/services.ts';

/** What of its services the table of routes looks at before a request comes. */
const gatewayServices: Partial<GatewayServices> = { brands: ['Messenger'] };

export const documents = {
  api: apiDocument(routes, 'https://soundpost.example'),
  gateway: gatewayDocument(
    keyedRoutes(gatewayServices as GatewayServices),
    'https://gateway.soundpost.example',
  ),
};

const [, , folder] = process.argv;
if (import.meta.main && folder !== undefined) {
  for (const [name, document] of Object.entries(documents)) {
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(document));
  }
}
