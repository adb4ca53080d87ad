/** The code that the OpenAPI document shows beside each operation (src/http/openapi/samples.ts). */
import { execFileSync } from 'node:child_process';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, it } from 'vitest';
import { routes } from '../../src/api/app.ts';
import { openApiDocument } from '../../src/api/openapi/document.ts';
import { createClient, type SoundpostClient } from '../../src/client/index.ts';
import { literalOf } from '../../src/http/openapi/literals.ts';
import { sampledOperations } from './code-samples.ts';

const BASE = 'https://soundpost.example';
const operations = sampledOperations(openApiDocument(routes, BASE));
const ofClient = operations.filter(({ samples }) => samples.JavaScript.includes("'soundpost-client'"));

/** What the client asks for when the call of a sample is made. */
async function requested(source: string): Promise<string> {
  const [, call = ''] = /= await (soundpost\.[\s\S]*?);\n/.exec(source) ?? [];
  const asked: string[] = [];
  const client = createClient({
    baseUrl: BASE,
    apiKey: 'sp_x',
    fetch: async (url, init) => {
      asked.push(`${init?.method?.toLowerCase()} ${new URL(String(url)).pathname}`);
      return Response.json({ success: true, data: {} });
    },
  });
  const made = new Function('soundpost', 'openAsBlob', `return (async () => ${call})()`);
  await made(client, async () => new Blob([]));
  return asked.join(', ');
}

describe('the samples of the OpenAPI document', () => {
  it('are in curl, JavaScript and Python, of every operation, and name all that they need', () => {
    expect(operations).toHaveLength(routes.length);
    for (const { operationId, labels, samples } of operations) {
      expect(labels, operationId).toEqual(['curl', 'JavaScript', 'Python']);
      for (const source of Object.values(samples)) {
        expect(source, operationId).toContain(BASE);
        expect(source, operationId).not.toMatch(/\{\w+\}|undefined/);
      }
    }
  });

  it('are JavaScript and Python', { tags: 'python3' }, () => {
    for (const { samples } of operations) {
      expect(parseAst(samples.JavaScript, { lang: 'js' }).type).toBe('Program');
    }
    const compile = 'import json, sys\nfor source in json.load(sys.stdin): compile(source, "sample", "exec")';
    const input = JSON.stringify(operations.map(({ samples }) => samples.Python));
    expect(() => execFileSync('python3', ['-c', compile], { input })).not.toThrow();
  });

  it.each(ofClient.map(({ operationId, ...operation }) => [operationId, operation] as const))(
    '%s by soundpost-client asks for that operation',
    async (_, { method, path, samples }) => {
      const pattern = new RegExp(`^${method} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
      expect(await requested(samples.JavaScript)).toMatch(pattern);
    },
  );

  it('are of soundpost-client wherever it has the operation', () => {
    const client = createClient({ baseUrl: BASE, apiKey: 'sp_x' });
    const names = operationsOf(client);
    expect(names.length).toBeGreaterThan(15);
    const shown = ofClient.map(
      ({ samples }) => /= await soundpost\.([\w.]+)\(/.exec(samples.JavaScript)?.[1] ?? '',
    );
    // They follow a job by its events; a tus upload is begun by a client of tus.
    const others = ['waitFor', 'events', 'uploads.begin'];
    expect(names.filter((name) => !shown.includes(name) && !others.includes(name))).toEqual([]);
  });
});

/** `job`, `uploads.get` */
function operationsOf(client: SoundpostClient): string[] {
  return Object.entries(client).flatMap(([name, part]: [string, unknown]) =>
    typeof part === 'object' && part !== null ? Object.keys(part).map((inner) => `${name}.${inner}`) : [name],
  );
}

describe('a literal', () => {
  const value = { "it's": 'a "quote"\n', on: true, off: false, none: null, list: [1.5, 'x'], empty: {} };

  it('of JavaScript has the value', () => {
    expect(new Function(`return (${literalOf(value, 'javascript')})`)()).toEqual(value);
  });

  it('of Python has the value', { tags: 'python3' }, () => {
    const program = `import json\nprint(json.dumps(${literalOf(value, 'python')}))`;
    expect(JSON.parse(execFileSync('python3', ['-c', program], { encoding: 'utf8' }))).toEqual(value);
  });
});
