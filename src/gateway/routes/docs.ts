/** `GET /openapi.json` and `GET /docs`: API documentation, without a key. */
import type { RequestHandler, Router } from 'express';
import { referencePage, sendDocument } from 'soundpost-kit/http/api-reference';
import { newRouter } from 'soundpost-kit/http/routes';
import { staticFiles } from 'soundpost-kit/http/static-files';
import { referenceFiles } from '../../process/config.ts';
import { otherMethods } from '../middleware/error-answer.ts';
import type { Route } from '../route.ts';

type Document = ReturnType<typeof referencePage>;

/** @param publicUrl absolute base URL without trailing slash */
export function docsRoutes(routes: readonly Route[], publicUrl: string): Router {
  const router = newRouter({ isExact: false });
  const page = referencePage('Soundpost messaging gateway');
  let document: Document | undefined;
  const sendOpenApi: RequestHandler = async (request, response) => {
    const { openApiDocument } = await import('../openapi/document.ts');
    document ??= {
      body: JSON.stringify(openApiDocument(routes, publicUrl)),
      headers: { 'Content-Type': 'application/json', 'Access-Control-Allow-Origin': '*' },
    };
    sendDocument(request, response, document);
  };
  router.route('/openapi.json').get(sendOpenApi).all(otherMethods('GET, HEAD'));
  router
    .route('/docs')
    .get((request, response) => sendDocument(request, response, page))
    .all(otherMethods('GET, HEAD'));
  router.use('/docs', staticFiles(referenceFiles));
  return router;
}
