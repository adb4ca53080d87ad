/**
 * Writes the declarations of soundpost-client (docs/decisions/0040-client-package.md): those of packages/client/src, with every type of the
 * contract as plain TypeScript, made of its schema and named as the OpenAPI document names it.
 *
 *   node script/client-declarations.ts <folder with the compiler's declarations of packages/client/src> <file to write>
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { assemble } from 'soundpost-kit/http/openapi/document';
import { z } from 'zod';
import { schemas } from '../src/api/openapi/document.ts';
import { declarationsOf } from './declaration-bundle.ts';
import { declaration, referred } from './json-schema-types.ts';

/** What a declaration takes, or passes on, from a module of the contract. */
const FROM_CONTRACT = /^(import|export) (?:type )?\{([^}]*)\} from 'soundpost-contract\/([\w-]+)';$/gm;
const INPUT = /\bz\.input<typeof (\w+)>/g;

interface Contract {
  /** By the names of the OpenAPI document. */
  readonly declarations: string;
  /** The declared name of what a request may hold, by the schema's name in the contract. */
  readonly given: Readonly<Record<string, string>>;
  /** And of what an answer holds. */
  readonly answered: Readonly<Record<string, string>>;
}

/** @param text all declarations of the client */
async function contractOf(text: string): Promise<Contract> {
  const used = await usedSchemas(text);
  const isGiven = new Set([...text.matchAll(INPUT)].map(([, name = '']) => name));
  const others = new Set(
    text
      .replaceAll(INPUT, '')
      .replaceAll(/^import .*/gm, '')
      .match(/\b[A-Z]\w*/g),
  );
  const those = (names: ReadonlySet<string>) =>
    z.object(Object.fromEntries([...used].filter(([name]) => names.has(name))));
  const names = new Map<unknown, string>(Object.entries(schemas).map(([name, schema]) => [schema, name]));
  const named = [...used].filter(([, schema]) => !names.has(schema));
  const { document, request, answer } = described(those(isGiven), those(others), {
    ...schemas,
    ...Object.fromEntries(named),
  });
  return {
    declarations: Object.entries(document)
      .map(([name, schema]) => declaration(name, schema))
      .join('\n'),
    given: namesIn(request),
    answered: namesIn(answer),
  };
}

/** The schemas of the contract that the client's types are made of. */
async function usedSchemas(text: string): Promise<ReadonlyMap<string, z.ZodType>> {
  const used = new Map<string, z.ZodType>();
  for (const [, , names = '', file = ''] of text.matchAll(FROM_CONTRACT)) {
    const exported: Record<string, unknown> = await import(`soundpost-contract/${file}`);
    for (const name of namesOf(names)) {
      const schema = exported[name];
      if (!(schema instanceof z.ZodType)) {
        throw new Error(
          `packages/client/src takes the type ${name} of soundpost-contract/${file}, which has no schema`,
        );
      }
      used.set(name, schema);
    }
  }
  return used;
}

function namesOf(list: string): string[] {
  return list.split(',').flatMap((part) => part.replace(/^\s*(type )?/, '').trim() || []);
}

const Schema = z.record(z.string(), z.unknown());
const WithProperties = z.looseObject({ properties: z.record(z.string(), z.unknown()) });
const Json = z.object({ content: z.object({ 'application/json': z.object({ schema: WithProperties }) }) });
const Described = z.object({
  components: z.object({ schemas: Schema }),
  paths: z.object({
    '/': z.object({ post: z.object({ requestBody: Json, responses: z.object({ 200: Json }) }) }),
  }),
});

/** As the OpenAPI document describes a body of the one and an answer of the other. */
function described(given: z.ZodObject, answered: z.ZodObject, named: Readonly<Record<string, z.ZodType>>) {
  const { components, paths } = Described.parse(
    assemble<never>({
      openapi: '3.1.1',
      info: { title: 'Types', version: '1' },
      operations: [
        {
          method: 'post',
          path: '/',
          docs: {
            operationId: 'types',
            summary: '',
            tag: '',
            body: { 'application/json': given },
            answers: { 200: { description: '', content: { 'application/json': answered } } },
            errors: [],
          },
          security: [],
          answerHeaders: [],
        },
      ],
      errors: { catalogue: {}, waiting: [], schema: () => z.never(), example: () => undefined },
      events: {},
      eventHeaders: z.object({}),
      schemas: named,
      examples: () => undefined,
      pathParameters: {},
      headers: {},
      securitySchemes: {},
    }),
  );
  const { requestBody, responses } = paths['/'].post;
  return {
    document: components.schemas,
    request: requestBody.content['application/json'].schema.properties,
    answer: responses[200].content['application/json'].schema.properties,
  };
}

function namesIn(properties: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const declared = referred(schema);
      if (declared === undefined) {
        throw new Error(`the schema ${name} has no name in the document`);
      }
      return [name, declared];
    }),
  );
}

/** A declaration of the client with the contract's types by their names in the document. */
function renamed(text: string, { given, answered }: Contract): string {
  return text.replaceAll(
    /\bz\.(input|infer|output)<typeof (\w+)>|\b[A-Z]\w*\b/g,
    (word: string, form?: string, name = word) => (form === 'input' ? given : answered)[name] ?? word,
  );
}

async function write(from: string, to: string): Promise<void> {
  const names = (await readdir(from)).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(from, name), 'utf8')));
  const contract = await contractOf(texts.join('\n'));
  const entry = texts[names.indexOf('index.d.ts')] ?? '';
  const others = texts.filter((text) => text !== entry).map((text) => renamed(text, contract));
  const known = new Set(Object.values(contract.answered));
  const whole = `${contract.declarations}\n${declarationsOf(entry, others, known)}`;
  if (/\bimport\b|\bz\./.test(whole)) {
    throw new Error('the declarations of the client refer to another package or file');
  }
  await writeFile(to, whole);
}

const [from = '', to = ''] = process.argv.slice(2);
await write(from, to);
