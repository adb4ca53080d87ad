/** Prints the OpenAPI document, for tools that judge it or make something of it. */
import { routes } from '../src/api/app.ts';
import { openApiDocument } from '../src/api/openapi/document.ts';

process.stdout.write(
  `${JSON.stringify(openApiDocument(routes, 'https://soundpost.example'), undefined, 2)}\n`,
);
