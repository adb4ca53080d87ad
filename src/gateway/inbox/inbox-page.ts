/** The files of the inbox page, as they lie in web/inbox. Everything that they show comes from the data routes. */
import { fileURLToPath } from 'node:url';
import express, { Router } from 'express';

const FOLDER = fileURLToPath(new URL('../../../web/inbox/', import.meta.url));

export function inboxPage(): Router {
  const router = Router();
  router.get('/', (request, response) => {
    // The page's addresses are relative to its own, so that a proxy may put it anywhere; a slash would shift them.
    if (/\/inbox\/(\?|$)/.test(request.originalUrl)) {
      const query = request.originalUrl.split('?')[1];
      response.redirect(308, `../inbox${query === undefined ? '' : `?${query}`}`);
      return;
    }
    response.set('Cache-Control', 'no-cache').sendFile('index.html', { root: FOLDER });
  });
  router.use(express.static(FOLDER, { index: false, redirect: false, fallthrough: true }));
  return router;
}
