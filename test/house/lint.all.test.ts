import { beforeAll, describe, expect, it } from 'vitest';
import { type Outcome, run } from './command.ts';
import { plantTree, projectFolder } from './planted-tree.ts';

const offences: readonly (readonly [rule: string, file: string, text: string])[] = [
  ['noProcessEnv', 'src/worker/a.ts', 'export const level = process.env.LOG_LEVEL;\n'],
  ['noProcessEnv', 'src/start.ts', "export const level = process['env'];\n"],
  [
    'noRestrictedImports',
    'src/worker/c.ts',
    "import { env } from 'node:process';\n\nexport const level = env.LEVEL;\n",
  ],
  ['plugin', 'src/worker/d.ts', 'const { env } = process;\nexport const level = env.LEVEL;\n'],
  ['plugin', 'src/api/q.ts', 'export const a = Object.setPrototypeOf({}, Array.prototype);\n'],
  ['noRestrictedGlobals', 'src/worker/e.ts', "export const answer = fetch('http://192.0.2.1/');\n"],
  ['noRestrictedGlobals', 'src/api/f.ts', "export const answer = globalThis.fetch('http://192.0.2.1/');\n"],
  ['noRestrictedGlobals', 'src/gateway/g.ts', "export const socket = new WebSocket('ws://192.0.2.1/');\n"],
  ['plugin', 'src/api/q.ts', "export const key = '{soundpost}:extract:job_1';\n"],
  ['plugin', 'src/gateway/r.ts', 'export const key = `{soundpost}:extract:job_1`;\n'],
  ['plugin', 'src/followups/s.ts', "export const key = (queue: Queue): string => queue.toKey('marker');\n"],
  ['plugin', 'src/cli/t.ts', 'export const backend = (queue: Queue): unknown => queue.getBackend();\n'],
  [
    'plugin',
    'src/jobs/u.ts',
    "import { KEY_PREFIX } from '../redis/keys.ts';\n\nexport const key = [KEY_PREFIX, 'extract', 'wait'].join(':');\n",
  ],
  ['plugin', 'packages/kit/src/observe/metrics/v.ts', 'export const key = `extract:active`;\n'],
  ['plugin', 'src/jobs/janitor/w.ts', "export const field = 'finishedOn';\n"],
  ['plugin', 'src/worker/x.ts', "export const field = 'spCancelled';\n"],
  [
    'plugin',
    'src/jobs/uploads/y.ts',
    "export const script = `return redis.call('HGET', KEYS[1], 'returnvalue')`;\n",
  ],
  [
    'plugin',
    'src/jobs/z.ts',
    "export const drop = loadScript(new URL('./lua/bullmq/unconfirmed-drop.lua', import.meta.url));\n",
  ],
  [
    'noExplicitAny',
    'packages/media/src/h.ts',
    'export const length = (value: any): number => value.length;\n',
  ],
  [
    'noNonNullAssertion',
    'packages/media/src/i.ts',
    'export const first = (list: string[]): string => list[0]!;\n',
  ],
  [
    'noFloatingPromises',
    'packages/media/src/j.ts',
    'export function f(): void {\n  Promise.reject(new Error());\n}\n',
  ],
  ['noConsole', 'packages/media/src/k.ts', 'console.log(1);\n'],
  ['noBarrelFile', 'packages/media/src/l.ts', "export * from './h.ts';\n"],
  ['useImportType', 'packages/media/src/m.ts', "import { T } from './t.ts';\n\nexport const t: T = 1;\n"],
  ['noUnusedVariables', 'packages/media/src/n.ts', 'function unused(): void {}\n'],
  [
    'noSkippedTests',
    'packages/media/test/o.test.ts',
    "import { it } from 'vitest';\n\nit.skip('works', () => {});\n",
  ],
  [
    'noExcessiveCognitiveComplexity',
    'packages/media/src/p.ts',
    `export function f(a: number): number {
  ${'if (a) { if (a) { if (a) { a += 1; } } }\n'.repeat(4)} return a;\n}\n`,
  ],
];

const lawful: Readonly<Record<string, string>> = {
  'src/jobs/bullmq-internals.ts':
    "import { KEY_PREFIX } from '../redis/keys.ts';\n\nexport const keys = KEY_PREFIX;\nexport const key = `extract:active`;\nexport const field = 'finishedOn';\n",
  'packages/kit/src/redis/keys.ts': "export const KEY_PREFIX = '{soundpost}';\n",
  'src/jobs/by-the-public-api.ts':
    "export const ended = (job: Job): unknown => [job.finishedOn, 'active', 'special'];\n",
  'src/process/config.ts': 'export const level = process.env.LOG_LEVEL;\n',
  'packages/outbound/src/request.ts': "export const answer = fetch('http://192.0.2.1/');\n",
  'src/followups/kinds/gateway-client.ts': "export const answer = fetch('http://192.0.2.1/');\n",
  'src/followups/post-webhook.ts': "export const answer = fetch('http://192.0.2.1/');\n",
  'packages/media/src/t.ts': 'export type T = number;\n',
  'src/worker/pid.ts': "export const pid = process.pid;\nprocess.on('SIGTERM', () => {});\n",
  'test/worker/x.test.ts': 'export const home = process.env.HOME;\n',
};

describe('the linter', () => {
  let outcome: Outcome;
  /** `rule in file`, for each error. */
  let reported: readonly string[];
  beforeAll(async () => {
    await using tree = await plantTree({
      ...lawful,
      ...Object.fromEntries(offences.map(([, file, text]) => [file, text])),
    });
    outcome = await run(tree.folder, `${projectFolder}/node_modules/.bin/biome`, [
      'lint',
      '--reporter=github',
      '--max-diagnostics=none',
    ]);
    const findings = outcome.output.matchAll(/^::error title=([^,]+),file=([^,]+),/gm);
    reported = [...findings].map(
      ([, rule, file]) => `${rule?.split('/').at(-1)} in ${file?.slice(tree.folder.length + 1)}`,
    );
  });

  it('fails', () => {
    expect(outcome.code).toBe(1);
  });

  it.each(offences)('reports %s in %s', (rule, file) => {
    expect(reported).toContain(`${rule} in ${file}`);
  });

  it('lets pass what the exceptions are for', () => {
    const planted = new Set(offences.map(([, file]) => file));
    expect(reported.filter((finding) => !planted.has(finding.split(' in ')[1] ?? ''))).toEqual([]);
  });
});
