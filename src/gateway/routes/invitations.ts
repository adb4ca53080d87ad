/** `GET /i/<code>`: where an invitation leads whoever clicks on it: into the inbox, which asks who enters the group. */
import type { RequestHandler } from 'express';

export const openInvitation: RequestHandler = (request, response) => {
  // Relative, because a proxy may have put the gateway below a path.
  response.redirect(302, `../inbox?invite=${encodeURIComponent(String(request.params.code))}`);
};
