/**
 * The OpenAPI document as one page for people: no script, nothing from elsewhere, all of it in the answer to GET /docs
 * (docs/decisions/0005-openapi-from-zod.md).
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Listed } from './curl.ts';
import { DocumentParts, keyHeader } from './document-parts.ts';
import { type Html, html, inline, prose } from './html.ts';
import { operationView, webhookView } from './operation-view.ts';
import { fieldTable, typeView } from './schema-view.ts';

const STYLE_FILE = new URL('../../web/docs/docs.css', import.meta.url);

export interface DocsPage {
  readonly html: string;
  /** Lets in the page's own style, by its hash, and nothing else. */
  readonly contentSecurityPolicy: string;
}

/** One row of an error catalogue. */
interface DescribedError {
  readonly httpStatus: number;
  readonly retryable: boolean;
  readonly meaning: string;
  readonly remedy: string;
}

export interface DocsPageOptions {
  /** What stands in the tab of the browser. */
  readonly title: string;
  /** A sentence about the key, after the name of its header; may hold `code`. */
  readonly aboutKey: string;
  /** Error codes, in the order of the table. */
  readonly errors: Readonly<Record<string, DescribedError>>;
  /** A file's name for commands that send one. */
  readonly sampleFile: string;
}

/** @param document an OpenAPI document, of 3.0 or 3.1, as the services make them */
export function docsPage(document: object, options: DocsPageOptions): DocsPage {
  const parts = DocumentParts.parse(document);
  const style = readFileSync(STYLE_FILE, 'utf8');
  const styleHash = createHash('sha256').update(style).digest('base64');
  const body = bodyOf(parts, options).text;
  return {
    html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${html`${options.title}`.text}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
${body}
</html>
`,
    contentSecurityPolicy: `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  };
}

function bodyOf(parts: DocumentParts, { aboutKey, errors, sampleFile }: DocsPageOptions): Html {
  const operations = Object.entries(parts.paths).flatMap(([path, item]) =>
    item.map((one) => ({ path, ...one })),
  );
  const events = Object.entries(parts.webhooks).flatMap(([path, item]) =>
    item.map((one) => ({ path, ...one })),
  );
  const groups = parts.tags.map((tag) => ({
    ...tag,
    operations: operations.filter(({ operation }) => operation.tags.includes(tag.name)),
  }));
  const { info } = parts;
  return html`<body>
<a class="skip" href="#content">To the content</a>
<nav aria-label="Contents">
  <p class="brand"><a href="#content">${info.title}</a> <span>API ${info.version}</span></p>
  ${groups.map(({ name, operations: listed }) => contentsView(name, listed))}
  ${contentsView('Events', events)}
  <p class="more"><a href="#schemas">Schemas</a> <a href="#errors">Errors</a> <a href="openapi.json">openapi.json</a></p>
</nav>
<main id="content">
  <header>
    <h1>${info.title} <span>${info.summary}</span></h1>
    ${prose(info.description)}
    <h4>Address</h4>
    <ul class="servers">${parts.servers.map(({ url, description }) => html`<li><code>${url}</code> ${description}</li>`)}</ul>
    <h4>Key</h4>
    <p>Send it in the header <code>${keyHeader(parts)}</code>. ${inline(aboutKey)}</p>
  </header>
  ${groups.map(
    ({ name, description, operations: listed }) =>
      html`<h2 id="${name}">${name}</h2><p>${description}</p>${listed.map((one) => operationView(one, parts, sampleFile))}`,
  )}
  <h2 id="events">Events</h2>
  ${prose(events[0]?.operation.description)}
  ${events.map((event) => webhookView(event, parts))}
  <h2 id="schemas">Schemas</h2>
  ${Object.entries(parts.components.schemas).map(
    ([name, schema]) =>
      html`<section class="schema" id="schema-${name}"><h3><a href="#schema-${name}">${name}</a></h3>${
        schema.properties
          ? fieldTable(schema)
          : html`<p>${typeView(schema)}${schema.pattern ? html` <code>${schema.pattern}</code>` : ''}</p>`
      }</section>`,
  )}
  <h2 id="errors">Errors</h2>
  ${errorsView(errors)}
</main>
</body>`;
}

function contentsView(title: string, listed: readonly Listed[]): Html {
  return html`<details open><summary>${title}</summary><ul>${listed.map(
    ({ method, operation }) =>
      html`<li><a href="#${operation.operationId}"><span class="method ${title === 'Events' ? 'event' : method}">${title === 'Events' ? 'event' : method}</span> ${operation.summary}</a></li>`,
  )}</ul></details>`;
}

function errorsView(errors: DocsPageOptions['errors']): Html {
  return html`<table class="errors">
    <thead><tr><th scope="col">Code</th><th scope="col">Meaning</th><th scope="col">What to do</th></tr></thead>
    <tbody>${Object.entries(errors).map(
      ([code, { httpStatus, meaning, remedy, retryable }]) => html`<tr id="error-${code}">
        <th scope="row"><code>${code}</code> <span class="status">${httpStatus}</span></th>
        <td>${meaning}</td>
        <td>${remedy}${retryable ? html` <span class="limit">may succeed later as it is</span>` : ''}</td>
      </tr>`,
    )}</tbody>
  </table>`;
}
