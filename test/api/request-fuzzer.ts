/** Requests made from an OpenAPI document: such as the document allows, nearly such, and hostile ones. */
import fc from 'fast-check';
import type { Json } from './api-fixture.ts';

export interface FuzzedRequest {
  readonly method: string;
  /** Encoded, with its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: FuzzedBody;
}

type FuzzedBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'form'; readonly parts: readonly FuzzedPart[] };

interface FuzzedPart {
  readonly name: string;
  readonly value: string;
  readonly filename: string | null;
}

/** Values that exist in the service, by the name of the parameter or the format of the field that takes them. */
export type Known = Readonly<Record<string, readonly string[]>>;

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

const hostileText = fc.constantFrom(
  ...[
    '',
    ' ',
    '\u0000',
    '../../etc/passwd',
    '..%2f..%2f',
    "' OR 1=1 --",
    '<script>',
    '{{7*7}}',
    '$(id)',
    '%00',
    '%ff',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'null',
    'NaN',
    '-0',
    '1e999',
    '\ud800',
    '\u202e',
    '🎻',
    '﷽',
    '*',
    ':',
  ],
  ...[
    'a'.repeat(300),
    '{soundpost}:sp:key',
    'job_',
    'http://169.254.169.254/',
    'file:///etc/passwd',
    '0x7f.1',
  ],
);
const text = fc.oneof(
  { weight: 3, arbitrary: hostileText },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
);
const hostileJson: fc.Arbitrary<unknown> = fc.oneof(
  text,
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 1e308, 2 ** 53, [], {}, [[]], [null], { a: {} }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.integer({ min: 1, max: 500 }).map((depth) => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)),
);
/** What a header may hold at all (RFC 9110 5.5). */
const headerText = fc.oneof(
  text.map((value) => value.replaceAll(/[^\x20-\x7e]/g, '').trim()),
  fc.string({ maxLength: 40 }).map((value) => value.trim()),
);

class Fuzzer {
  readonly #document: Json;
  readonly #known: Known;

  constructor(document: Json, known: Known) {
    this.#document = document;
    this.#known = known;
  }

  requests(): fc.Arbitrary<FuzzedRequest> {
    const operations = Object.entries<Json>(this.#document.paths).flatMap(([path, item]) =>
      Object.entries<Json>(item)
        .filter(([method]) => METHODS.includes(method.toUpperCase()))
        .map(([method, operation]) => this.#operation(path, method.toUpperCase(), operation)),
    );
    return fc.oneof(...operations);
  }

  #resolve(schema: Json): Json {
    const reference: string | undefined = schema?.$ref;
    if (reference === undefined) return schema ?? {};
    const target = reference
      .split('/')
      .slice(1)
      .reduce((part: Json, name) => part[name], this.#document);
    return this.#resolve(target);
  }

  #operation(path: string, method: string, operation: Json): fc.Arbitrary<FuzzedRequest> {
    const parameters: Json[] = (operation.parameters ?? []).map((one: Json) => this.#resolve(one));
    const at = (place: string): Json[] => parameters.filter((one) => one.in === place);
    return fc
      .record({
        method: often(9, fc.constant(method), fc.constantFrom(...METHODS)),
        prefix: often(4, fc.constant(''), fc.constant('/audio-extract')),
        names: fc.record(Object.fromEntries(at('path').map((one) => [one.name, this.#name(one)]))),
        query: mostlyWithout(Object.fromEntries(at('query').map((one) => [one.name, this.#word(one)]))),
        extraQuery: often(9, fc.constant(''), text),
        headers: mostlyWithout(
          Object.fromEntries(at('header').map((one) => [one.name.toLowerCase(), this.#header(one)])),
        ),
        strange: often(6, fc.constant({}), this.#strangeHeaders()),
        sent: this.#body(operation.requestBody?.content ?? {}),
      })
      .map(({ prefix, names, query, extraQuery, headers, strange, sent, ...rest }) => {
        const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
          String((names as Record<string, string>)[name]),
        );
        const search = new URLSearchParams(query as Record<string, string>).toString();
        const extra = extraQuery === '' ? '' : `&${encodeURIComponent(extraQuery.toWellFormed())}=1`;
        return {
          method: rest.method,
          path: `${path.startsWith('/v1/') ? prefix : ''}${filled}${search || extra ? `?${search}${extra}` : ''}`,
          headers: { ...sent.headers, ...headers, ...strange } as Record<string, string>,
          body: sent.body,
        };
      });
  }

  /** Of a path: one that exists, one of the right form, or anything, encoded or raw as far as a path may hold it. */
  #name(parameter: Json): fc.Arbitrary<string> {
    const known = this.#known[parameter.name] ?? [];
    const wellFormed = this.#value(parameter.schema).map(
      (value) => encodeURIComponent(String(value).toWellFormed()) || 'x',
    );
    const hostile = text.map((value) => encodeURIComponent(value.toWellFormed()) || 'x');
    const raw = fc.constantFrom('%', '%zz', '%ff', '%c0%ae', '.', ';', '*', '%2e%2e%2f', 'x%00y');
    return fc.oneof(
      { weight: 6, arbitrary: known.length === 0 ? wellFormed : fc.constantFrom(...known) },
      { weight: 2, arbitrary: wellFormed },
      { weight: 1, arbitrary: hostile },
      { weight: 1, arbitrary: raw },
    );
  }

  #word(parameter: Json): fc.Arbitrary<string> {
    const known = this.#known[parameter.name] ?? [];
    const allowed = this.#value(parameter.schema).map((value) =>
      typeof value === 'string' ? value : (JSON.stringify(value) ?? ''),
    );
    return often(3, known.length === 0 ? allowed : fc.oneof(fc.constantFrom(...known), allowed), text);
  }

  #header(parameter: Json): fc.Arbitrary<string> {
    const allowed = this.#word(parameter).map((value) => value.replaceAll(/[^\x20-\x7e]/g, '').trim());
    return often(3, allowed, headerText);
  }

  #strangeHeaders(): fc.Arbitrary<Record<string, string>> {
    const number = fc.oneof(fc.integer({ min: -5, max: 1e6 }).map(String), headerText);
    const names = {
      'x-api-key': fc.oneof(headerText, fc.constant(`sp_aaaaaaaa_${'a'.repeat(40)}`)),
      'content-type': fc.oneof(
        headerText,
        fc.constantFrom(
          'application/json; charset=utf-16',
          'multipart/form-data',
          'multipart/form-data; boundary=',
        ),
        fc.constantFrom('text/plain', 'application/offset+octet-stream', 'application/json; charset=nothing'),
      ),
      'content-encoding': fc.constantFrom('gzip', 'br', 'deflate', 'x'),
      accept: headerText,
      range: fc.oneof(headerText, fc.constantFrom('bytes=0-0', 'bytes=-1', 'bytes=5-1,2-3', 'bytes=9e9-')),
      'if-none-match': headerText,
      'idempotency-key': headerText,
      'tus-resumable': fc.constantFrom('1.0.0', '0.2.2', 'x'),
      'upload-length': number,
      'upload-offset': number,
      'upload-metadata': headerText,
      'upload-checksum': headerText,
      'upload-defer-length': number,
      'x-http-method-override': fc.constantFrom(...METHODS, 'TRACE', ''),
      'content-disposition': headerText,
      origin: headerText,
      'x-forwarded-for': headerText,
    };
    return fc.record(names, { requiredKeys: [] }).map((made) =>
      // Many at once hide one another's effects.
      Object.fromEntries(Object.entries(made).slice(0, 3)),
    ) as fc.Arbitrary<Record<string, string>>;
  }

  #body(content: Record<string, Json>): fc.Arbitrary<{ body: FuzzedBody; headers: Record<string, string> }> {
    const none = fc.constant<{ body: FuzzedBody; headers: Record<string, string> }>({
      body: { kind: 'none' },
      headers: {},
    });
    const bodies = Object.entries(content).map(([type, media]) => this.#bodyOf(type, media));
    return bodies.length === 0
      ? none
      : fc.oneof({ weight: 1, arbitrary: none }, ...bodies.map((arbitrary) => ({ weight: 6, arbitrary })));
  }

  #bodyOf(type: string, media: Json): fc.Arbitrary<{ body: FuzzedBody; headers: Record<string, string> }> {
    const headers: Record<string, string> = { 'content-type': type };
    if (type === 'application/json') {
      const asText = (value: unknown): string => JSON.stringify(value) ?? '';
      const allowed = this.#value(media.schema);
      const json = fc.oneof(
        { weight: 4, arbitrary: allowed.map(asText) },
        { weight: 4, arbitrary: mutated(allowed).map(asText) },
        { weight: 1, arbitrary: hostileJson.map(asText) },
        // Deeper than most programs can write out again.
        { weight: 1, arbitrary: fc.nat(120_000).map((depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`) },
        {
          weight: 1,
          arbitrary: fc.tuple(allowed.map(asText), fc.nat(200)).map(([whole, end]) => whole.slice(0, end)),
        },
      );
      return json.map((made) => ({ headers, body: { kind: 'text', text: made } }));
    }
    if (type === 'multipart/form-data') {
      const { anyOf = [media.schema] } = this.#resolve(media.schema);
      // Of a form that has several, the fields of all.
      const forms: Json[] = anyOf.map((form: Json) => this.#resolve(form).properties ?? {});
      const properties = Object.entries<Json>(Object.assign({}, ...forms));
      const part = (name: string, schema: Json): fc.Arbitrary<FuzzedPart> =>
        fc.record({
          name: often(9, fc.constant(name), text),
          value: often(
            3,
            this.#value(schema).map((value) => (typeof value === 'string' ? value : JSON.stringify(value))),
            text,
          ),
          filename: name === 'file' ? often(9, text, fc.constant(null)) : fc.constant(null),
        });
      const parts = properties.map(([name, schema]) => part(name, schema));
      return fc
        .tuple(...parts)
        .chain((all) => fc.shuffledSubarray([...all, ...all], { minLength: 0, maxLength: all.length + 1 }))
        .map((chosen) => ({ headers: {}, body: { kind: 'form', parts: chosen } }));
    }
    return fc.uint8Array({ maxLength: 200 }).map((bytes) => ({ headers, body: { kind: 'bytes', bytes } }));
  }

  /** A value that the schema allows, or nearly: patterns and limits are met by what is known and by the examples. */
  #value(given: Json): fc.Arbitrary<Json> {
    const schema = this.#resolve(given);
    const known = this.#known[schema.pattern ?? ''] ?? this.#known[schema.format ?? ''];
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    if (schema.examples !== undefined)
      return often(2, fc.constantFrom(...schema.examples), this.#typed(schema));
    if (known !== undefined) return fc.constantFrom(...known);
    const choices: Json[] | undefined = schema.oneOf ?? schema.anyOf;
    if (choices !== undefined) return fc.oneof(...choices.map((one) => this.#value(one)));
    return this.#typed(schema);
  }

  #typed(schema: Json): fc.Arbitrary<Json> {
    switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
      case 'string':
        return often(4, matching(schema.pattern ?? '^[a-z][a-z ]{0,19}$'), text);
      case 'integer':
        return fc.integer({
          min: Math.max(-9, schema.minimum ?? -9),
          max: Math.min(200_000, schema.maximum ?? 99),
        });
      case 'number':
        return fc.double({ min: schema.minimum ?? -50, max: schema.maximum ?? 50, noNaN: true });
      case 'boolean':
        return fc.boolean();
      case 'array':
        return fc.array(this.#value(schema.items), { maxLength: 12 });
      case 'object': {
        const properties = Object.entries<Json>(schema.properties ?? {});
        const fields = (required: boolean): Record<string, fc.Arbitrary<Json>> =>
          Object.fromEntries(
            properties
              .filter(([name]) => (schema.required ?? []).includes(name) === required)
              .map(([name, one]) => [name, this.#value(one)]),
          );
        return fc
          .tuple(fc.record(fields(true)), mostlyWithout(fields(false)))
          .map(([needed, optional]) => ({ ...needed, ...optional }));
      }
      default:
        return hostileJson;
    }
  }
}

function matching(pattern: string): fc.Arbitrary<string> {
  try {
    return fc.stringMatching(new RegExp(pattern, 'u'));
  } catch {
    return text;
  }
}

/** Some of the fields: with all of them at once hardly anything would be accepted. */
function mostlyWithout(fields: Record<string, fc.Arbitrary<Json>>): fc.Arbitrary<Record<string, Json>> {
  const names = Object.keys(fields);
  return fc
    .oneof(
      fc.constant<string[]>([]),
      fc.subarray(names, { maxLength: Math.min(2, names.length) }),
      fc.subarray(names),
    )
    .chain((chosen) =>
      fc.record(Object.fromEntries(chosen.map((name) => [name, fields[name] ?? fc.constant(null)]))),
    );
}

function often<A, B>(times: number, usual: fc.Arbitrary<A>, rare: fc.Arbitrary<B>): fc.Arbitrary<A | B> {
  return fc.oneof({ weight: times, arbitrary: usual }, { weight: 1, arbitrary: rare });
}

/** A value with something in it put away, replaced or added. */
function mutated(values: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  return fc
    .tuple(values, fc.nat(1000), fc.constantFrom('drop', 'put', 'add'), hostileJson, text)
    .map(([value, choice, action, put, name]) => {
      const copy = structuredClone(value);
      const places = placesIn(copy);
      const place = places[choice % Math.max(1, places.length)];
      if (place === undefined) return put;
      if (action === 'drop') delete place.parent[place.field];
      else place.parent[action === 'add' ? name : place.field] = put;
      return copy;
    });
}

function placesIn(value: Json): { parent: Json; field: string }[] {
  return typeof value !== 'object' || value === null
    ? []
    : Object.keys(value).flatMap((field) => [{ parent: value, field }, ...placesIn(value[field])]);
}

export function fuzzedRequests(document: Json, known: Known): fc.Arbitrary<FuzzedRequest> {
  return new Fuzzer(document, known).requests();
}
