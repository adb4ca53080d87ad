import { existsSync } from 'node:fs';
import extractDepcruiseConfig from 'dependency-cruiser/config-utl/extract-depcruise-config';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Outcome, run } from './command.ts';
import { plantTree, projectFolder } from './planted-tree.ts';

const something = 'export const something = 1;\n';
const importing = (...paths: string[]): string =>
  paths.map((path, index) => `import * as m${index} from '${path}';\nvoid m${index};\n`).join('') + something;

/** A small house in which everything that the table allows is done, by somebody. */
const lawful = {
  'src/main.ts': importing('./cli/serve.ts', './config.ts', 'zod'),
  'src/cli/serve.ts': importing(
    '../api/start.ts',
    '../gateway/start.ts',
    '../worker/start.ts',
    '../config.ts',
    '../queue/queues.ts',
    '../client/client.ts',
    '../resources.ts',
  ),
  'src/resources.ts': importing(
    './backing-services.ts',
    './config.ts',
    './launcher.ts',
    './observe/logger.ts',
    './secrets.ts',
  ),
  'src/backing-services.ts': importing('./config.ts', './storage/file-storage.ts'),
  'src/config.ts': importing('soundpost-contract/job', './settings/environment.ts', 'zod'),
  'src/settings/environment.ts': importing('soundpost-contract/job', './values.ts', 'zod'),
  'src/settings/values.ts': importing('zod'),
  'src/launcher.ts': something,
  'src/process-home.ts': something,
  'src/observe/logger.ts': `${importing('pino')}export type Logger = number;\n`,
  'src/secrets.ts': something,
  'packages/contract/package.json': JSON.stringify({
    name: 'soundpost-contract',
    type: 'module',
    exports: { './job': './src/job.ts' },
    dependencies: { zod: '4' },
  }),
  'packages/contract/src/job.ts': importing('./formats.ts', 'zod'),
  'packages/contract/src/formats.ts': something,
  'packages/outer/package.json': JSON.stringify({
    name: 'soundpost-outer',
    type: 'module',
    exports: { './outer': './src/outer.ts' },
    dependencies: { 'soundpost-contract': '0' },
  }),
  'packages/outer/src/outer.ts': importing('soundpost-contract/job'),
  'src/signing/hmac.ts': importing('node:crypto'),
  'src/client/client.ts': `import type { z } from 'zod';\nimport type { something as s } from 'soundpost-contract/job';\nexport type S = z.infer<typeof s>;\n`,
  'src/redis/connection.ts': `${importing('./script.ts', 'ioredis')}import type { Logger } from '../observe/logger.ts';\nexport type L = Logger;\n`,
  'src/redis/script.ts': something,
  'src/queue/queues.ts': importing(
    '../signing/hmac.ts',
    '../observe/metrics/observer.ts',
    '../redis/script.ts',
    '../tenants/api-keys.ts',
    '../process-home.ts',
    'bullmq',
  ),
  'src/deliveries/sign-webhook.ts': importing('../signing/hmac.ts'),
  'src/deliveries/delivery-queue.ts': importing(
    './sign-webhook.ts',
    'soundpost-contract/job',
    '../outbound/request.ts',
    '../queue/queues.ts',
    '../redis/connection.ts',
    '../signing/hmac.ts',
    'bullmq',
  ),
  'src/tenants/api-keys.ts': importing('soundpost-contract/job', '../redis/script.ts'),
  'src/queue/bullmq-internals.ts': something,
  'src/uploads/record.ts': importing('../redis/script.ts', '../queue/bullmq-internals.ts'),
  'src/janitor/janitor.ts': importing('../queue/queues.ts', '../uploads/record.ts'),
  'src/sparse/mp4/boxes.ts': importing('../../media/sniff.ts'),
  'src/streams/join/join.ts': importing('../../media/sniff.ts', '../../sparse/mp4/boxes.ts'),
  'src/media/sniff.ts': something,
  'src/redis/embedded.ts': importing('node:child_process'),
  'src/storage/storage.ts': importing('soundpost-contract/job'),
  'src/storage/file-storage.ts': importing('./storage.ts', '../process-home.ts'),
  'src/outbound/request.ts': importing('soundpost-contract/job', 'undici'),
  'src/media/run.ts': importing('soundpost-contract/job', 'fluent-ffmpeg'),
  'src/media/starter.ts': importing('node:child_process'),
  'src/media/tool-process.ts': importing('node:child_process'),
  'src/observe/metrics/observer.ts': importing('soundpost-contract/job'),
  'src/observe/metrics/registry.ts': importing('./observer.ts', 'prom-client'),
  'src/observe/metrics/scrape.ts': importing(
    './registry.ts',
    '../../signing/hmac.ts',
    '../../http/listener.ts',
  ),
  'src/http/listener.ts': importing('express', '../redis/script.ts'),
  'src/observe/tracing/tracing.ts': something,
  'src/observe/board/board.ts': importing(
    '../../http/listener.ts',
    'soundpost-contract/job',
    '../../queue/queues.ts',
    '../../signing/hmac.ts',
    '@bull-board/api',
  ),
  'src/observe/tracing/open-telemetry.ts': importing(
    './tracing.ts',
    '../../http/listener.ts',
    '@opentelemetry/api',
    'bullmq-otel',
  ),
  'src/cli/doctor/check.ts': importing(
    '../../redis/connection.ts',
    '../../media/run.ts',
    '../../storage/disk-space.ts',
  ),
  'src/storage/disk-space.ts': something,
  'src/api/app.ts': importing(
    'soundpost-contract/job',
    '../queue/queues.ts',
    '../storage/storage.ts',
    '../outbound/request.ts',
    '../media/run.ts',
  ),
  'src/api/start.ts': importing(
    './app.ts',
    '../config.ts',
    '../resources.ts',
    '../observe/logger.ts',
    '../storage/file-storage.ts',
  ),
  'src/worker/extraction.ts': importing(
    '../queue/queues.ts',
    '../storage/storage.ts',
    '../media/run.ts',
    '../observe/metrics/observer.ts',
    '../observe/tracing/tracing.ts',
  ),
  'src/worker/start.ts': importing('./extraction.ts', '../launcher.ts', '../secrets.ts'),
  'src/gateway/app.ts': importing(
    'soundpost-contract/job',
    '../redis/connection.ts',
    '../redis/script.ts',
    '../storage/storage.ts',
    '../outbound/request.ts',
    '../media/run.ts',
  ),
  'src/gateway/start.ts': `${importing('./app.ts', '../redis/embedded.ts')}export const load = () => import('./transports/xmpp/xmpp.ts');\n`,
  'src/gateway/transports/xmpp/xmpp.ts': importing('./stream.ts', '@xmpp/client'),
  'src/gateway/transports/xmpp/stream.ts': something,
};

/** Breaches: the rule, the file that breaks it, and how. */
const breaches: readonly (readonly [rule: string, file: string, text: string])[] = [
  ['fence', 'packages/contract/src/a.ts', importing('../../../src/queue/queues.ts')],
  ['fence', 'src/api/p.ts', importing('../../packages/contract/src/formats.ts')],
  ['undeclared', 'packages/contract/src/c.ts', importing('express')],
  ['no-circular', 'packages/contract/src/job.ts', importing('./formats.ts', 'zod', 'soundpost-outer/outer')],
  ['no-unresolvable', 'packages/outer/src/a.ts', importing('soundpost-contract/formats')],
  ['contract-imports-only-zod', 'packages/contract/src/b.ts', importing('node:crypto')],
  [
    'client-imports',
    'src/client/a.ts',
    "import type { something } from '../redis/script.ts';\nexport type S = typeof something;\n",
  ],
  ['client-needs-nothing', 'src/client/b.ts', importing('soundpost-contract/job')],
  ['client-needs-nothing', 'src/client/c.ts', importing('node:crypto')],
  ['client-is-for-others', 'src/api/l.ts', importing('../client/client.ts')],
  ['client-is-for-others', 'src/resources.ts', importing('./client/client.ts')],
  ['signing-imports', 'src/signing/a.ts', importing('../redis/script.ts')],
  ['redis-imports', 'src/redis/a.ts', importing('../queue/queues.ts')],
  ['tenants-imports', 'src/tenants/a.ts', importing('../queue/queues.ts')],
  ['uploads-imports', 'src/uploads/a.ts', importing('../queue/queues.ts')],
  ['janitor-imports', 'src/janitor/a.ts', importing('../storage/storage.ts')],
  ['queue-imports', 'src/queue/f.ts', importing('../uploads/record.ts')],
  ['sparse-imports', 'src/sparse/a.ts', importing('../media/run.ts')],
  ['streams-imports', 'src/streams/a.ts', importing('../outbound/request.ts')],
  ['transcripts-imports', 'src/transcripts/a.ts', importing('../worker/extraction.ts')],
  ['queue-imports', 'src/queue/a.ts', importing('../storage/storage.ts')],
  ['queue-imports', 'src/queue/b.ts', importing('../worker/extraction.ts')],
  ['deliveries-imports', 'src/deliveries/a.ts', importing('../worker/extraction.ts')],
  ['one-delivery-engine', 'src/gateway/w.ts', importing('../deliveries/sign-webhook.ts')],
  ['one-delivery-engine', 'src/api/w.ts', importing('../deliveries/sign-webhook.ts')],
  ['storage-imports', 'src/storage/a.ts', importing('../queue/queues.ts')],
  ['outbound-imports', 'src/outbound/a.ts', importing('../media/run.ts')],
  ['media-imports', 'src/media/a.ts', importing('../outbound/request.ts')],
  ['media-imports', 'src/media/b.ts', 'export type T = typeof import("../api/app.ts");\n'],
  ['one-router', 'src/api/o.ts', importing('express')],
  ['one-router', 'src/gateway/o.ts', importing('router')],
  ['one-router', 'src/observe/board/o.ts', importing('express')],
  ['http-imports', 'src/http/a.ts', importing('../queue/queues.ts')],
  ['observe/metrics-imports', 'src/observe/metrics/a.ts', importing('../../queue/queues.ts')],
  ['queue-imports', 'src/queue/d.ts', importing('../observe/metrics/scrape.ts')],
  ['observe/tracing-imports', 'src/observe/tracing/a.ts', importing('../../queue/queues.ts')],
  ['gateway-imports', 'src/gateway/h.ts', importing('../observe/tracing/open-telemetry.ts')],
  ['observe/board-imports', 'src/observe/board/a.ts', importing('../../api/app.ts')],
  ['cli/doctor-imports', 'src/cli/doctor/a.ts', importing('../../storage/file-storage.ts')],
  ['settings-are-handed-in', 'src/cli/doctor/b.ts', importing('../../config.ts')],
  ['api-imports', 'src/api/a.ts', importing('../worker/extraction.ts')],
  ['api-imports', 'src/api/b.ts', importing('../storage/file-storage.ts')],
  ['worker-imports', 'src/worker/a.ts', importing('../gateway/app.ts')],
  ['worker-imports', 'src/worker/b.ts', "export const load = () => import('../api/app.ts');\n"],
  [
    'worker-imports',
    'src/worker/c.ts',
    "export async function f() {\n  await using x = (await import('../api/app.ts')).y;\n}\n",
  ],
  ['gateway-imports', 'src/gateway/a.ts', importing('../queue/queues.ts')],
  ['gateway-imports', 'src/gateway/b.ts', "export type * from '../api/app.ts';\n"],
  [
    'gateway-imports',
    'src/gateway/deep/c.ts',
    "import type { something } from '../../worker/extraction.ts';\n",
  ],
  ['child_process-owner', 'src/media/c.ts', importing('child_process')],
  ['child_process-owner', 'src/queue/c.ts', importing('node:child_process')],
  [
    'child_process-owner',
    'src/api/c.ts',
    "export const c = process.getBuiltinModule('node:child_process');\n",
  ],
  ['bullmq-owner', 'src/gateway/d.ts', importing('bullmq')],
  ['ioredis-owner', 'src/api/d.ts', importing('ioredis')],
  ['fluent-ffmpeg-owner', 'src/worker/d.ts', importing('fluent-ffmpeg')],
  ['@aws-sdk-owner', 'src/storage/d.ts', importing('@aws-sdk/client-s3')],
  ['undici-owner', 'src/worker/e.ts', importing('undici')],
  ['net-owner', 'src/worker/n0.ts', importing('node:net')],
  ['tls-owner', 'src/worker/n1.ts', importing('node:tls')],
  ['https-owner', 'src/worker/n2.ts', importing('node:https')],
  ['dgram-owner', 'src/worker/n3.ts', importing('node:dgram')],
  ['pino-owner', 'src/worker/f.ts', importing('pino')],
  ['prom-client-owner', 'src/api/m.ts', importing('prom-client')],
  ['@opentelemetry-owner', 'src/worker/m.ts', importing('@opentelemetry/api')],
  ['bullmq-otel-owner', 'src/queue/e.ts', importing('bullmq-otel')],
  ['@bull-board-owner', 'src/api/n.ts', importing('@bull-board/api')],
  ['@xmpp-owner', 'src/gateway/e.ts', importing('@xmpp/client')],
  ['baileys-owner', 'src/gateway/f.ts', "export const load = () => import('baileys');\n"],
  ['logger-is-handed-in', 'src/worker/g.ts', importing('../observe/logger.ts')],
  ['settings-are-handed-in', 'src/api/g.ts', importing('../config.ts')],
  ['settings-are-handed-in', 'src/gateway/g.ts', "import type { something } from '../config.ts';\n"],
  ['settings-are-handed-in', 'src/media/g.ts', importing('../launcher.ts')],
  ['settings-are-handed-in', 'src/queue/h.ts', importing('../resources.ts')],
  ['settings-are-handed-in', 'src/queue/g.ts', importing('../settings/environment.ts')],
  ['settings-imports', 'src/settings/a.ts', importing('../redis/connection.ts')],
  ['settings-import-nothing', 'src/launcher.ts', importing('./media/run.ts')],
  ['start-imports-own-process', 'src/worker/start.ts', importing('../gateway/app.ts')],
  ['start-is-imported-by-main', 'src/api/h.ts', importing('./start.ts')],
  ['worker-imports', 'src/worker/k.ts', importing('../resources.ts')],
  ['api-imports', 'src/api/k.ts', importing('../cli/serve.ts')],
  ['optional-part-is-loaded-on-demand', 'src/gateway/i.ts', importing('./transports/xmpp/xmpp.ts')],
  ['optional-part-is-loaded-on-demand', 'src/backing-services.ts', importing('./observe/board/board.ts')],
  ['main-is-imported-by-nobody', 'src/worker/h.ts', importing('../main.ts')],
  ['home-imports', 'src/helpers/a.ts', importing('soundpost-contract/job')],
  ['home-imported', 'src/api/i.ts', importing('../odds-and-ends.ts')],
  ['src-stands-alone', 'src/api/j.ts', importing('../../script/import-rules.ts')],
  ['no-development-package', 'src/worker/j.ts', importing('fast-check')],
  ['no-circular', 'src/media/k.ts', importing('./l.ts')],
  ['no-unresolvable', 'src/media/m.ts', importing('./nowhere.ts')],
];

describe('the import rules', () => {
  it('let pass what the table allows', async () => {
    await using tree = await plantTree(lawful);
    const { code, output } = await run(tree.folder, process.execPath, ['script/import-rules.ts']);
    expect(output).toMatch(
      new RegExp(
        `^${Object.keys(lawful).filter((path) => path.endsWith('.ts')).length} modules, \\d+ imports, 0 breaches\n$`,
      ),
    );
    expect(code).toBe(0);
  });

  describe('with breaches planted', () => {
    let outcome: Outcome;
    beforeAll(async () => {
      await using tree = await plantTree({
        ...lawful,
        ...Object.fromEntries(breaches.map(([, file, text]) => [file, text])),
        'src/odds-and-ends.ts': something,
        'src/media/l.ts': importing('./k.ts'),
      });
      outcome = await run(tree.folder, process.execPath, ['script/import-rules.ts']);
    });

    it('fail', () => {
      expect(outcome.code).toBe(1);
    });

    it.each(breaches)('report %s in %s', (rule, file) => {
      expect(outcome.output).toContain(`${rule}: ${file} → `);
    });

    it('blame no file that breaks nothing', () => {
      const circles = ['src/media/l.ts', 'packages/outer/src/outer.ts'];
      const planted = new Set([...breaches.map(([, file]) => file), ...circles]);
      const blamed = [...outcome.output.matchAll(/^[^:\n]+: (\S+) → /gm)].map(([, file]) => file);
      expect(blamed.filter((file) => file !== undefined && !planted.has(file))).toEqual([]);
    });
  });

  it('are each broken above', async () => {
    const { forbidden = [] } = await extractDepcruiseConfig(`${projectFolder}/.dependency-cruiser.mjs`);
    const planted = new Set(breaches.map(([rule]) => rule));
    expect(forbidden.map(({ name }) => name).filter((name) => !planted.has(name ?? ''))).toEqual([]);
  });

  it.each([
    ['no module is there', {}],
    ['no import is seen', { 'src/main.ts': something }],
  ])('do not pass because %s', async (_, files) => {
    await using tree = await plantTree(files);
    expect((await run(tree.folder, process.execPath, ['script/import-rules.ts'])).code).toBe(1);
  });

  it('have read every file of this project and are kept', async () => {
    const listed = await run(projectFolder, 'git', ['ls-files', 'src/*.ts', 'packages/*/src/*.ts']);
    const files = listed.output
      .split('\n')
      .filter((file) => file !== '' && existsSync(`${projectFolder}/${file}`));
    const { output } = await run(projectFolder, process.execPath, ['script/import-rules.ts']);
    const [, modules, imports, count] = /(\d+) modules, (\d+) imports, (\d+) breaches/.exec(output) ?? [];
    expect(files.length).toBeGreaterThan(0);
    expect(Number(modules)).toBeGreaterThanOrEqual(files.length);
    // A file without any import is rare; a checker that sees few imports is blind.
    expect(Number(imports)).toBeGreaterThan(2 * files.length);
    expect(Number(count), output).toBe(0);
  });
});
