import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ownNode, run } from './command.ts';
import { plantTree, projectFolder } from './planted-tree.ts';

/** A script that prints an OpenAPI document with one operation. */
const printsDocument = (operation: object): string => {
  const document = {
    openapi: '3.1.1',
    info: { title: 'House', version: '1', license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: 'https://house.example' }],
    security: [],
    paths: { '/door': { get: { operationId: 'open', summary: 'Open', ...operation } } },
  };
  return `process.stdout.write(\n  '${JSON.stringify(document)}',\n);\n`;
};

/** A project that is in order, with packages of its own: those of this project would be unused in it. */
const inOrder: Readonly<Record<string, string>> = {
  'script/bootstrap': '#!/bin/sh\n',
  'script/site.ts': '',
  'web/reference/reference.ts': "document.title = 'House';\n",
  'script/openapi-document.ts': printsDocument({ responses: { 200: { description: 'It is open' } } }),
  'package.json': `${JSON.stringify(
    {
      name: 'house',
      version: '1.0.0',
      type: 'module',
      private: true,
      scripts: { format: 'biome check --write .' },
      dependencies: { zod: '*' },
      devDependencies: {
        '@biomejs/biome': '*',
        '@swc/core': '*',
        '@types/node': '*',
        'dependency-cruiser': '*',
        knip: '*',
        typescript: '*',
        vitest: '*',
      },
    },
    null,
    2,
  )}\n`,
  'src/main.ts': "import { JobId } from './contract/job.ts';\n\nJobId.parse('1');\n",
  'src/contract/job.ts': "import { z } from 'zod';\n\nexport const JobId = z.string();\n",
};

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A registry that answers npm's question for weaknesses so; `run` has commands ask it. */
async function startRegistry(status: number, answer: object) {
  const server = createServer(({ method, url }, response) => {
    // It asks for the versions of what is weak besides.
    const name = url?.slice(1);
    const versions = {
      name,
      'dist-tags': { latest: '1.0.0' },
      versions: { '1.0.0': { name, version: '1.0.0' } },
    };
    const body = method === 'POST' ? answer : versions;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const npm_config_registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    run: (folder: string, command: string, args: readonly string[] = [], env: Record<string, string> = {}) =>
      run(folder, command, args, { ...ownNode, npm_config_registry, ...env }),
  };
}

/** The end of `script/check`: `verdict` by name of the check. */
function verdicts(output: string): Record<string, string> {
  const lines = output.matchAll(/^(\S.*?) +(ok|FAILED) +\d+[.,]\d+ s/gm);
  return Object.fromEntries([...lines].map(([, name, verdict]) => [name, verdict]));
}

const allOk = {
  types: 'ok',
  'types of pages': 'ok',
  'lint, format': 'ok',
  'import rules': 'ok',
  'dead code': 'ok',
  OpenAPI: 'ok',
  'docs site': 'ok',
  'lock file': 'ok',
  vulnerabilities: 'ok',
};

describe('script/check', () => {
  it('passes a project that is in order, and says how many modules it saw', async () => {
    await using tree = await plantTree(inOrder);
    const registry = await startRegistry(200, {});
    const { code, output } = await registry.run(tree.folder, 'script/check');
    expect(verdicts(output), output).toEqual(allOk);
    expect(output).toContain('(2 modules, 2 imports, 0 breaches)');
    expect(code).toBe(0);
  });

  it.each([
    ['types', 'src/contract/id.ts', 'export const id: number = "1";\n'],
    ['types of pages', 'web/reference/reference.ts', 'document.title = 1;\n'],
    ['lint, format', 'src/contract/id.ts', 'export const id =   1;\n'],
    ['import rules', 'src/contract/id.ts', "import { sep } from 'node:path';\n\nexport const id = sep;\n"],
    ['dead code', 'src/contract/id.ts', 'export const id = 1;\n\nexport const unused = 2;\n'],
  ])('fails for %s, shows the place and names the check', async (name, file, text) => {
    await using tree = await plantTree({
      ...inOrder,
      'src/main.ts': `import { id } from './contract/id.ts';\n${inOrder['src/main.ts']}\nJobId.parse(id);\n`,
      [file]: text.replaceAll('"', "'"),
    });
    const { code, output } = await run(tree.folder, 'script/check', [name]);
    expect(verdicts(output), output).toEqual({ [name]: 'FAILED' });
    expect(output).toContain(file);
    expect(output).toMatch(new RegExp(`^check: failed: ${name}$`, 'm'));
    expect(code).toBe(1);
  });

  it('fails for a package of which a weakness is known, and shows it', async () => {
    await using tree = await plantTree(inOrder);
    const url = 'https://advisories.example/1';
    const advisory = {
      id: 1,
      url,
      title: 'takes anything for valid',
      severity: 'high',
      vulnerable_versions: '*',
    };
    const registry = await startRegistry(200, { zod: [advisory] });
    const { code, output } = await registry.run(tree.folder, 'script/check', ['vulnerabilities']);
    expect(output).toContain('takes anything for valid');
    expect(code).toBe(1);
  });

  it('fails where the registry does not say, unless it is asked not to mind', async () => {
    await using tree = await plantTree(inOrder);
    const registry = await startRegistry(405, {});
    const silent = await registry.run(tree.folder, 'script/check', ['vulnerabilities']);
    expect(silent.output).toMatch(/did not say whether weaknesses .*SKIP_AUDIT=1/);
    expect(silent.code).toBe(1);
    const skipped = await registry.run(tree.folder, 'script/check', ['vulnerabilities'], { SKIP_AUDIT: '1' });
    expect(skipped.output).toContain('(skipped: the registry does not answer)');
    expect(skipped.code).toBe(0);
  });

  it('fails for an OpenAPI document that breaks a rule, and shows the place', async () => {
    await using tree = await plantTree({
      ...inOrder,
      'script/openapi-document.ts': printsDocument({ responses: {} }),
    });
    const { code, output } = await run(tree.folder, 'script/check', ['OpenAPI']);
    expect(verdicts(output), output).toEqual({ OpenAPI: 'FAILED' });
    expect(output).toContain('operation-2xx-response');
    expect(code).toBe(1);
  });

  it.each([
    ['without integrity', { integrity: undefined }, 'has no sha512 integrity'],
    ['with a weak one', { integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }, 'has no sha512 integrity'],
    ['from elsewhere', { resolved: 'https://packages.example/zod/-/zod-4.6.7.tgz' }, 'packages.example'],
    ['from a repository', { resolved: 'git+ssh://git@packages.example/zod.git#1' }, 'git+ssh'],
  ])('fails for a package %s in the lock file, and names it', async (_what, change, said) => {
    const lock = JSON.parse(await readFile(join(projectFolder, 'package-lock.json'), 'utf8'));
    Object.assign(lock.packages['node_modules/zod'], change);
    await using tree = await plantTree({ 'package-lock.json': JSON.stringify(lock) });
    const { code, output } = await run(tree.folder, process.execPath, ['script/lock-file.ts']);
    expect(output).toMatch(/^node_modules\/zod: /m);
    expect(output).toContain(said);
    expect(output).toMatch(/^\d+ packages, 1 faults$/m);
    expect(code).toBe(1);
  });

  it('goes on after a failure and names every check that failed', async () => {
    await using tree = await plantTree({ ...inOrder, 'src/orphan.ts': "export const  x: number = 'x'\n" });
    const asked = ['types', 'lint, format', 'dead code', 'lock file'];
    const { output } = await run(tree.folder, 'script/check', asked);
    expect(verdicts(output)).toMatchObject({ 'lock file': 'ok' });
    expect(output).toMatch(/^check: failed: types, lint, format, dead code$/m);
  });

  it('refuses the name of a check that there is not, and says which there are', async () => {
    await using tree = await plantTree(inOrder);
    const { code, output } = await run(tree.folder, 'script/check', ['lint']);
    expect(output).toContain('there is no check "lint"; there are: types; types of pages; lint, format; ');
    expect(code).toBe(2);
  });
});
