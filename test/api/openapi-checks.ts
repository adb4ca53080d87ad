/** Judges by tools that know nothing of ours: a JSON Schema validator on the schemas of an OpenAPI document. */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

type Plain = Readonly<Record<string, unknown>>;

/** A value that the document says is one of a schema. */
export interface Example {
  /** JSON pointer of the schema in the document. */
  readonly schemaAt: string;
  readonly name: string;
  readonly value: unknown;
}

export class DocumentChecks {
  readonly #document: Plain;
  readonly #ajv: Ajv2020;
  /** By the schema's pointer: compiling takes longer than judging. */
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: object) {
    this.#document = document as Plain;
    // Not strict: an OpenAPI document holds more than JSON Schema's own words.
    this.#ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(this.#ajv);
    this.#ajv.addFormat('binary', true);
    this.#ajv.addSchema(document, 'document');
  }

  /** What a value breaks of the schema at a pointer; empty when it fits. */
  faults(schemaAt: string, value: unknown): string[] {
    const validate = this.#validators.get(schemaAt) ?? this.#ajv.compile({ $ref: `document#${schemaAt}` });
    this.#validators.set(schemaAt, validate);
    return validate(value) ? [] : (validate.errors ?? []).map(said);
  }

  /** What an answer breaks of what the document says about it. */
  answerFaults(method: string, path: string, status: number, mediaType: string, body: unknown): string[] {
    const operation = at(this.#document, ['paths', path, method.toLowerCase()]);
    const response = this.#resolved(at(operation, ['responses', String(status)]));
    if (response === undefined) {
      return [`${method} ${path} has no answer ${status}`];
    }
    const { pointer, value } = response;
    if (at(value, ['content', mediaType]) === undefined) {
      return [`${method} ${path} ${status} has no ${mediaType}`];
    }
    const start = pointer ?? `/paths/${escaped(path)}/${method.toLowerCase()}/responses/${status}`;
    return this.faults(`${start}/content/${escaped(mediaType)}/schema`, body);
  }

  /** Every example of a body or an answer, wherever it stands. */
  examples(): Example[] {
    const found: Example[] = [];
    visit(this.#document, '', (part, pointer) => {
      if (part.schema !== undefined && part.examples !== undefined) {
        for (const [name, example] of Object.entries(part.examples as Record<string, { value: unknown }>)) {
          found.push({ schemaAt: `${pointer}/schema`, name: `${pointer} ${name}`, value: example.value });
        }
      }
    });
    return found;
  }

  #resolved(value: unknown): { value: unknown; pointer?: string } | undefined {
    const reference = at(value, ['$ref']);
    if (typeof reference === 'string') {
      const pointer = reference.slice(1);
      return { value: at(this.#document, pointer.slice(1).split('/')), pointer };
    }
    return value === undefined ? undefined : { value };
  }
}

function visit(part: unknown, pointer: string, see: (part: Plain, pointer: string) => void): void {
  if (typeof part !== 'object' || part === null) {
    return;
  }
  see(part as Plain, pointer);
  for (const [name, inner] of Object.entries(part)) {
    visit(inner, `${pointer}/${escaped(name)}`, see);
  }
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, name) => (typeof inner === 'object' && inner !== null ? (inner as Plain)[name] : undefined),
    value,
  );
}

/** For a JSON pointer in the fragment of a URI (RFC 6901, 6). */
function escaped(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
}

function said({ instancePath, message = '', params }: ErrorObject): string {
  return `${instancePath || '/'} ${message} ${JSON.stringify(params)}`;
}
