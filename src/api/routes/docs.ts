/** GET /openapi.json and GET /docs: what the service can do, for programs and for people (decisions A6). */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { errorCatalogue } from '../../contract/errors.ts';
import { type DocsPage, docsPage } from '../../docs-page/page.ts';
import { openApiDocument } from '../openapi/document.ts';
import type { Route, RouteContext } from '../route.ts';

interface Page {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Both change only with the service itself; whoever asks again within the time has the old one for so long at most. */
const CACHE_CONTROL = 'public, max-age=300';

/** @param allRoutes the whole table, these two included; called at the first request */
export function docsRoutes(allRoutes: () => readonly Route[]): readonly Route[] {
  const pages = new Map<string, Page>();
  const pageOf = (name: string, publicUrl: string, make: () => Page): Page => {
    const id = `${name} ${publicUrl}`;
    const page = pages.get(id) ?? make();
    pages.set(id, page);
    return page;
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
          304: { description: 'The caller has it' },
        },
        errors: [],
      },
      async handle(context) {
        const { publicUrl } = context.services.settings;
        send(
          context,
          pageOf('openapi.json', publicUrl, () => ({
            body: apiReference(allRoutes(), publicUrl).document,
            headers: { 'Content-Type': 'application/json' },
          })),
        );
      },
    },
    {
      method: 'get',
      path: '/docs',
      access: { by: 'public' },
      docs: {
        operationId: 'getDocs',
        summary: 'This document as a page for people',
        tag: 'Service',
        answers: {
          200: {
            description: 'One page, which needs nothing else',
            content: { 'text/html': 'binary' },
            headers: { ETag: 'The SHA-256 of the page' },
          },
          304: { description: 'The caller has it' },
        },
        errors: [],
      },
      async handle(context) {
        const { publicUrl } = context.services.settings;
        send(
          context,
          pageOf('docs', publicUrl, () => {
            const { html, contentSecurityPolicy } = apiReference(allRoutes(), publicUrl).page;
            return {
              body: html,
              headers: {
                'Content-Type': 'text/html; charset=utf-8',
                'Content-Security-Policy': contentSecurityPolicy,
              },
            };
          }),
        );
      },
    },
  ];
}

/**
 * The API's reference, as it is served here and as it stands in the site of the documentation.
 * @param publicUrl absolute base of the API, without a slash at the end
 */
export function apiReference(
  routes: readonly Route[],
  publicUrl: string,
): { readonly document: string; readonly page: DocsPage } {
  const document = openApiDocument(routes, publicUrl);
  return {
    document: JSON.stringify(document),
    page: docsPage(document, {
      title: 'Soundpost API',
      aboutKey: 'Each operation names the scope that the key must have.',
      errors: errorCatalogue,
      sampleFile: 'video.mp4',
    }),
  };
}

function send({ request, response }: RouteContext, { body, headers }: Page): void {
  response.set({ ...headers, 'Cache-Control': CACHE_CONTROL, ETag: etagOf(body) });
  if (request.fresh) {
    response.status(304).end();
    return;
  }
  response.status(200).send(body);
}

function etagOf(body: string): string {
  return `"${createHash('sha256').update(body).digest('hex')}"`;
}
