/** `GET /openapi.json` and `GET /docs`: what the gateway can do, for programs and for people; both without a key. */
import type { RequestHandler, Router } from 'express';
import { referencePage, sendDocument } from 'soundpost-kit/http/api-reference';
import { newRouter } from 'soundpost-kit/http/routes';
import { staticFiles } from 'soundpost-kit/http/static-files';
import { referenceFiles } from '../../process/reference-files.ts';
import { otherMethods } from '../middleware/error-answer.ts';
import type { Route } from '../route.ts';

type Document = ReturnType<typeof referencePage>;

/** @param publicUrl absolute base of the gateway, without a slash at the end */
export function docsRoutes(routes: readonly Route[], publicUrl: string): Router {
  const router = newRouter({ isExact: false });
  const page = referencePage('Soundpost messaging gateway');
  let document: Document | undefined;
  const sendOpenApi: RequestHandler = async (request, response) => {
    // What makes it is of no use to anybody who does not ask for it.
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
