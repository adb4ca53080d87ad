/**
 * The API reference at /docs: Scalar's standalone file with the server's own OpenAPI document
 * (docs/decisions/0025-api-reference.md). Everything is served by this server.
 */
import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';

interface Document {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface ErrorRow {
  readonly httpStatus: number;
  readonly meaning: string;
  readonly remedy: string;
}

/** Scalar makes style elements, hence 'unsafe-inline' for styles, on this page alone. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Both change only with the service, so a copy may be up to 5 minutes old. */
const CACHE_CONTROL = 'public, max-age=300';

/**
 * The page. It loads `openapi.json` beside itself and its files below `docs/`.
 * @param files their location; default: below the page's own path
 */
export function referencePage(title: string, files = 'docs/'): Document {
  const body = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${title}</title>
    <link rel="icon" href="data:," />
    <style>
      .not-started { max-width: 34rem; margin: 0 auto; padding: 15vh 1.25rem; font-family: system-ui, sans-serif; animation: appear 0s 1.5s backwards; }
      @keyframes appear { from { visibility: hidden; } }
    </style>
  </head>
  <body>
    <div id="reference"></div>
    <main id="not-started" class="not-started">
      <h1>${title}</h1>
      <p>The reference did not start. It needs JavaScript: allow scripts for this page, check your connection, and reload.</p>
      <p><a href="openapi.json">The OpenAPI document</a> needs no script.</p>
    </main>
    <script src="${files}scalar.js"></script>
    <script src="${files}reference.js"></script>
  </body>
</html>
`;
  return {
    body,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    },
  };
}

/** Every error of a server in Markdown, for the description of its OpenAPI document. */
export function errorTable(catalogue: Readonly<Record<string, ErrorRow>>): string {
  const rows = Object.entries(catalogue).map(
    ([code, { httpStatus, meaning, remedy }]) => `| \`${code}\` | ${httpStatus} | ${meaning} | ${remedy} |`,
  );
  return ['## Errors', '', '| Code | Status | Meaning | What to do |', '|---|---|---|---|', ...rows].join(
    '\n',
  );
}

export function sendDocument(request: Request, response: Response, { body, headers }: Document): void {
  const etag = `"${createHash('sha256').update(body).digest('hex')}"`;
  response.set({ ...headers, 'Cache-Control': CACHE_CONTROL, ETag: etag });
  if (request.fresh) {
    response.status(304).end();
    return;
  }
  response.status(200).send(body);
}
