/** GET /openapi.json and GET /docs: API documentation for programs and people (decisions A6). */

import { referencePage, sendDocument } from 'soundpost-kit/http/api-reference';
import { z } from 'zod';
import type { Route } from '../route.ts';

type Document = ReturnType<typeof referencePage>;

/** @param allRoutes called at the first request, which also loads the document's writer */
export function docsRoutes(allRoutes: () => readonly Route[]): readonly Route[] {
  const page = referencePage('Soundpost API');
  /** By base address. */
  const documents = new Map<string, Document>();
  const documentOf = async (publicUrl: string): Promise<Document> => {
    const { openApiDocument } = await import('../openapi/document.ts');
    const document = documents.get(publicUrl) ?? {
      body: JSON.stringify(openApiDocument(allRoutes(), publicUrl)),
      headers: { 'Content-Type': 'application/json' },
    };
    documents.set(publicUrl, document);
    return document;
  };
  return [
    {
      method: 'get',
      path: '/openapi.json',
      access: { by: 'public' },
      docs: {
        operationId: 'getOpenApi',
        summary: 'This document',
        tag: 'Service',
        answers: {
          200: {
            description: 'OpenAPI 3.1',
            content: { 'application/json': z.looseObject({ openapi: z.string() }) },
            headers: { ETag: 'The SHA-256 of the document' },
          },
          304: { description: 'Not modified' },
        },
        errors: [],
      },
      async handle({ request, response, services }) {
        sendDocument(request, response, await documentOf(services.settings.publicUrl));
      },
    },
    {
      method: 'get',
      path: '/docs',
      access: { by: 'public' },
      docs: {
        operationId: 'getDocs',
        summary: 'This document as a web page',
        tag: 'Service',
        answers: {
          200: {
            description: 'A web page; its files come from this server',
            content: { 'text/html': 'binary' },
            headers: { ETag: 'The SHA-256 of the page' },
          },
          304: { description: 'Not modified' },
        },
        errors: [],
      },
      async handle({ request, response }) {
        sendDocument(request, response, page);
      },
    },
  ];
}
