/** The files of the inbox page, as they lie in web/inbox and web/shared. Everything that they show comes from the data routes. */
import type { Router } from 'express';
import { newRouter } from '../../http/routes.ts';
import { filesIn, staticFiles } from '../../http/static-files.ts';

const PAGE = new URL('../../../web/inbox/', import.meta.url);
const SHARED = new URL('../../../web/shared/', import.meta.url);

export function inboxPage(): Router {
  const router = newRouter({ isExact: false });
  const files = new Map([...filesIn(PAGE, ''), ...filesIn(SHARED, 'shared/')]);
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
