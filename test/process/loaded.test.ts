/** What a process that waits for work has not loaded: each of these takes 2 MiB or more, and some never need it. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectFolder } from '../docs/markdown.ts';
import { ownNode, run } from '../house/command.ts';

const PROGRAM = `
  import { registerHooks } from 'node:module';
  const packages = new Set();
  registerHooks({ load(url, context, next) {
    packages.add(/node_modules\\/((@[^/]+\\/)?[^/]+)/.exec(url)?.[1]);
    return next(url, context);
  } });
  await import('./cli/serve.ts');
  for (const part of ['api', 'worker', 'gateway']) await import('./' + part + '/start.ts');
  console.log(JSON.stringify([...packages, ...process.moduleLoadList]));
  process.exit();`;

it('neither a bucket, the board, tracing, an account, an upload nor an HTTP client', async () => {
  const args = ['--input-type=module', '--eval', PROGRAM];
  const { code, output } = await run(join(projectFolder, 'src'), process.execPath, args, ownNode);
  expect(code, output).toBe(0);
  const loaded: string[] = JSON.parse(output);
  expect(loaded).toEqual(expect.arrayContaining(['express', 'bullmq']));
  const unwanted =
    /^(undici|NativeModule internal\/deps\/undici\/undici|baileys|@(aws-sdk|smithy|bull-board|tus|xmpp)\/.*|@opentelemetry\/sdk.*)$/;
  expect(loaded.filter((name) => unwanted.test(name ?? ''))).toEqual([]);
});
