/** One operation as a section of the page. */
import { curlCommands, type Listed } from './curl.ts';
import type { Content, DocumentParts, Operation, Response, Schema } from './document-parts.ts';
import { type Html, html, inline, prose } from './html.ts';
import { fieldRow, fieldTable, typeView } from './schema-view.ts';

export function operationView(listed: Listed, parts: DocumentParts, sampleFile: string): Html {
  const { path, method, operation } = listed;
  return html`<section class="operation" id="${operation.operationId}">
    <h3><a href="#${operation.operationId}">${operation.summary}</a></h3>
    <p class="address"><span class="method ${method}">${method}</span> <code>${path}</code>${scopesView(operation)}</p>
    ${prose(operation.description)}
    ${parametersView(operation)}
    ${bodyView(operation, parts, 'written')}
    ${answersView(operation, parts)}
    <div class="commands">${curlCommands(listed, parts, sampleFile).map(
      ({ title, text }) =>
        html`<figure>${title === '' ? '' : html`<figcaption>${title}</figcaption>`}<pre tabindex="0"><code>${text}</code></pre></figure>`,
    )}</div>
  </section>`;
}

export function webhookView({ path: event, operation }: Listed, parts: DocumentParts): Html {
  return html`<section class="operation" id="${operation.operationId}">
    <h3><a href="#${operation.operationId}">${operation.summary}</a></h3>
    <p class="address"><span class="method event">event</span> <code>${event}</code></p>
    ${bodyView(operation, parts, 'read')}
    ${Object.values(operation.requestBody?.content ?? {}).map(examplesView)}
  </section>`;
}

function scopesView({ security }: Operation): Html {
  const scopes = security.flatMap((requirement) => requirement.apiKey ?? []);
  const signed = security.some((requirement) => 'signedUrl' in requirement) ? html` or signed address` : '';
  // A key without scopes opens all that it opens at all.
  if (scopes.length === 0) {
    return security.length === 0 ? html` <span class="scope">no key</span>` : html``;
  }
  return html` <span class="scope">scope ${scopes.join(', ')}${signed}</span>`;
}

function parametersView({ parameters }: Operation): Html {
  if (parameters.length === 0) {
    return html``;
  }
  const rows = parameters.map(({ name, in: place, required, schema, description }) =>
    fieldRow(name, { ...schema, description }, required ? 'required' : '', place),
  );
  return html`<h4>Parameters</h4><table class="fields"><tbody>${rows}</tbody></table>`;
}

function bodyView(
  { requestBody }: Operation,
  { components }: DocumentParts,
  side: 'written' | 'read',
): Html[] {
  return Object.entries(requestBody?.content ?? {}).map(
    ([mediaType, { schema = {} }], index) =>
      html`<h4>Body <span class="media">${mediaType}</span> ${schema.$ref === undefined ? '' : typeView(schema)}</h4>${fieldTable(schema, { side, expand: index === 0 ? components.schemas : {} })}`,
  );
}

function answersView({ responses }: Operation, parts: DocumentParts): Html {
  const resolved = Object.entries(responses).map(([status, response]): [string, Response] => [
    status,
    '$ref' in response ? sharedResponse(response.$ref, parts) : response,
  ]);
  const codes = resolved.flatMap(([status, response]) =>
    errorCodes(response).map((code) => ({ status, code })),
  );
  return html`<h4>Answers</h4>
    ${resolved.map(([status, response]) => successView(status, response, parts))}
    ${
      codes.length === 0
        ? ''
        : html`<p class="codes"><span class="label">Errors</span> ${codes.map(
            ({ status, code }) =>
              html`<a href="#error-${code}"><span class="status">${status}</span> ${code}</a> `,
          )}</p>`
    }`;
}

function sharedResponse(reference: string, { components }: DocumentParts): Response {
  const response = components.responses[reference.slice('#/components/responses/'.length)];
  if (response === undefined) {
    throw new Error(`the document has no ${reference}`);
  }
  return response;
}

/** Nothing for a status that only errors have. */
function successView(status: string, response: Response, parts: DocumentParts): Html {
  const [description = ''] = response.description.split('\n');
  if (description.startsWith('- ')) {
    return html``;
  }
  const ownHeaders = Object.entries(response.headers).filter(
    ([, header]) => header.$ref === undefined || header.$ref.endsWith('Retry-After'),
  );
  return html`<div class="answer">
    <p><span class="status good">${status}</span> ${inline(description)}</p>
    ${contentsView(response.content, parts)}
    ${
      ownHeaders.length === 0
        ? ''
        : html`<ul class="headers">${ownHeaders.map(
            ([name, { description: says, $ref }]) =>
              html`<li><code>${name}</code> ${inline(says ?? parts.components.headers[$ref?.split('/').at(-1) ?? '']?.description ?? '')}</li>`,
          )}</ul>`
    }
    ${Object.values(response.content).map(examplesView)}
  </div>`;
}

function contentsView(content: Content, { components }: DocumentParts): Html {
  const media = Object.entries(content).filter(
    ([, { schema = {} }]) => !variants(schema).every(isErrorEnvelope),
  );
  const types = media.map(([mediaType]) => mediaType).filter((mediaType) => mediaType !== 'application/json');
  return html`${types.length === 0 ? '' : html`<p class="media">${types.join(', ')}</p>`}${media.map(
    ([, { schema = {} }]) => jsonView(schema, components.schemas),
  )}`;
}

/** Of an envelope, what it holds. */
function jsonView(schema: Schema, named: Readonly<Record<string, Schema>>): Html {
  const data = variants(schema).find(({ properties }) => properties?.success && properties.data)?.properties
    ?.data;
  if (data !== undefined) {
    return html`<p><code>data</code> ${typeView(data)}</p>${data.properties ? fieldTable(data) : ''}`;
  }
  if (schema.$ref !== undefined || schema.items !== undefined) {
    return html`<p>${typeView(schema)}</p>${fieldTable(schema.items ?? schema, { expand: named })}`;
  }
  return schema.properties ? fieldTable(schema) : html``;
}

function variants(schema: Schema): readonly Schema[] {
  return schema.anyOf ?? [schema];
}

function isErrorEnvelope({ properties }: Schema): boolean {
  return properties?.error !== undefined && (properties.success ?? properties.requestId) !== undefined;
}

function errorCodes({ content }: Response): string[] {
  return variants(content['application/json']?.schema ?? {})
    .filter(isErrorEnvelope)
    .flatMap(({ properties }) => (properties?.error?.properties?.code ?? properties?.code)?.enum ?? [])
    .map(String);
}

/** Examples of what succeeds; an error's tells no more than its code. */
function examplesView({ examples = {} }: Content[string]): Html[] {
  return Object.values(examples)
    .filter(
      ({ value }) =>
        !(
          typeof value === 'object' &&
          value !== null &&
          'error' in value &&
          ('success' in value || 'requestId' in value)
        ),
    )
    .map(
      ({ summary, value }) =>
        html`<details><summary>Example: ${summary}</summary><pre tabindex="0"><code>${JSON.stringify(value, undefined, 2)}</code></pre></details>`,
    );
}
