/** `GET /openapi.json` and `GET /docs`: what the gateway can do, for programs and for people; both without a key. */
import { createHash } from 'node:crypto';
import { type RequestHandler, Router } from 'express';
import { gatewayErrorCatalogue } from '../../contract/gateway-errors.ts';
import { type DocsPage, docsPage } from '../../docs-page/page.ts';
import { otherMethods } from '../middleware/error-answer.ts';
import { openApiDocument } from '../openapi/document.ts';
import type { Route } from '../route.ts';

interface Page {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Both change only with the gateway itself; whoever asks again within the time has the old one for so long at most. */
const CACHE_CONTROL = 'public, max-age=300';

/** @param publicUrl asked when a page is first wanted */
export function docsRoutes(routes: readonly Route[], publicUrl: () => string): Router {
  const router = Router();
  const pages = {
    '/openapi.json': (): Page => ({
      body: gatewayReference(routes, publicUrl()).document,
      headers: { 'Content-Type': 'application/json', 'Access-Control-Allow-Origin': '*' },
    }),
    '/docs': (): Page => {
      const { html, contentSecurityPolicy } = gatewayReference(routes, publicUrl()).page;
      return {
        body: html,
        headers: {
          'Content-Type': 'text/html; charset=utf-8',
          'Content-Security-Policy': contentSecurityPolicy,
        },
      };
    },
  };
  for (const [path, make] of Object.entries(pages)) {
    router.route(path).get(served(make)).all(otherMethods('GET, HEAD'));
  }
  return router;
}

/**
 * The gateway's reference, as it is served here and as it stands in the site of the documentation.
 * @param publicUrl absolute base of the gateway, without a slash at the end
 */
export function gatewayReference(
  routes: readonly Route[],
  publicUrl: string,
): { readonly document: string; readonly page: DocsPage } {
  const document = openApiDocument(routes, publicUrl);
  return {
    document: JSON.stringify(document),
    page: docsPage(document, {
      title: 'Soundpost messaging gateway',
      aboutKey:
        'The gateway’s own key opens every instance and their management, the token of an instance that instance alone.',
      errors: gatewayErrorCatalogue,
      sampleFile: 'greeting.mp3',
    }),
  };
}

function served(make: () => Page): RequestHandler {
  let page: (Page & { readonly etag: string }) | undefined;
  return (request, response) => {
    page ??= withEtag(make());
    response.set({ ...page.headers, 'Cache-Control': CACHE_CONTROL, ETag: page.etag });
    if (request.fresh) {
      response.status(304).end();
      return;
    }
    response.send(page.body);
  };
}

function withEtag(page: Page): Page & { readonly etag: string } {
  return { ...page, etag: `"${createHash('sha256').update(page.body).digest('hex')}"` };
}
