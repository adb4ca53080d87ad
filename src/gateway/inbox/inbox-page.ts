/** The files of the inbox page, which `script/build-web.ts` makes of web/inbox. Everything that they show comes from the data routes. */
import { existsSync } from 'node:fs';
import type { Router } from 'express';
import { newRouter } from 'soundpost-kit/http/routes';
import { filesIn, staticFiles } from 'soundpost-kit/http/static-files';

const PAGE = new URL('../../../web/dist/inbox/', import.meta.url);

/** @throws where the page was not built */
export function inboxPage(): Router {
  if (!existsSync(PAGE)) {
    throw new Error('web/dist is missing, which the voice inbox is served from: script/bootstrap builds it');
  }
  const router = newRouter({ isExact: false });
  const files = new Map(filesIn(PAGE, ''));
  const page = staticFiles(new Map([['', new URL('index.html', PAGE)]]));
  router.get('/', (request, response, next) => {
    // The page's addresses are relative to its own, so that a proxy may put it anywhere; a slash would shift them.
    if (/\/inbox\/(\?|$)/.test(request.originalUrl)) {
      const query = request.originalUrl.split('?')[1];
      response.redirect(308, `../inbox${query === undefined ? '' : `?${query}`}`);
      return;
    }
    return page(request, response, next);
  });
  router.use(staticFiles(files));
  return router;
}
