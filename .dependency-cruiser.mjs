// @ts-check
// Who may import whom. Folder by folder as docs/architecture.md has it; test/house/import-rules.test.ts plants a breach
// of every rule. Run by script/import-rules.ts, which also makes sure that the checker has read every file.

const storageInterface = 'storage/(incoming|storage|workspaces)\\.ts$';
const diskSpace = 'storage/disk-(claim|full|space)\\.ts$';
// The connection, and how a Lua script is handed to it: the gateway keeps its state in Redis but knows no queue.
const redisConnection = 'queue/(redis|script)\\.ts$';

// What is told of the work, without who listens: handed in like a logger.
const observer = '(metrics/observer|tracing/tracing)\\.ts$';

/** What the files of a folder may import of ours, besides their own folder. `start.ts` is not among them: see below. */
const mayImport = {
  contract: [],
  settings: ['contract/'],
  signing: [],
  client: ['contract/'],
  queue: ['contract/', 'signing/', observer],
  storage: ['contract/'],
  outbound: ['contract/'],
  http: [],
  metrics: ['contract/', 'signing/', 'http/'],
  tracing: ['http/'],
  board: ['contract/', 'queue/', 'signing/'],
  media: ['contract/'],
  doctor: ['queue/', diskSpace, 'media/'],
  'docs-page': [],
  api: [
    'contract/',
    'signing/',
    'queue/',
    storageInterface,
    diskSpace,
    'outbound/',
    'media/',
    'docs-page/',
    'http/',
  ],
  worker: [
    'contract/',
    'signing/',
    'queue/',
    storageInterface,
    diskSpace,
    'outbound/',
    'media/',
    'http/',
    observer,
  ],
  gateway: [
    'contract/',
    'signing/',
    redisConnection,
    storageInterface,
    'outbound/',
    'media/',
    'docs-page/',
    'http/',
    observer,
  ],
};

/** Packages and built-in modules that few places may import: what comes from them has one owner. */
const onlyIn = {
  child_process: ['src/media/run\\.ts', 'src/queue/embedded-redis\\.ts'],
  bullmq: ['src/queue/'],
  ioredis: ['src/queue/'],
  'fluent-ffmpeg': ['src/media/'],
  '@aws-sdk': ['src/storage/s3-(abandoned|bucket|incoming|reader|signed-url|storage)\\.ts'],
  pino: ['src/logger\\.ts'],
  'prom-client': ['src/metrics/registry\\.ts'],
  '@opentelemetry': ['src/tracing/'],
  'bullmq-otel': ['src/tracing/'],
  '@bull-board': ['src/board/'],
  '@xmpp': ['src/gateway/transports/xmpp/'],
  baileys: ['src/gateway/transports/whatsapp/'],
  // Requests to addresses that others chose go through outbound; clients of configured services are listed after it.
  undici: ['src/outbound/'],
};

const compositionRoots = '^src/(main|(processes|commands)/[^/]+|[^/]+/start)\\.ts$';
const besidesFolders = '(commands|processes)/[^/]+|config|launcher|logger|main|secrets';
const homes = `^src/((${Object.keys(mayImport).join('|')})/|(${besidesFolders})\\.ts$)`;

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
const folderRules = Object.entries(mayImport).map(([folder, others]) => ({
  name: `${folder}-imports`,
  comment: `src/${folder} may import, of ours: ${['its own folder', ...others].join(', ')}, and the type Logger`,
  severity: 'error',
  from: { path: `^src/${folder}/`, pathNot: compositionRoots },
  to: { path: '^src/', pathNot: [`${folder}/`, ...others, 'logger\\.ts$'].map((path) => `^src/${path}`) },
}));

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
const ownerRules = Object.entries(onlyIn).map(([module, owners]) => ({
  name: `${module}-owner`,
  comment: `${module} may be imported only in ${owners.join(', ').replaceAll('\\', '')}`,
  severity: 'error',
  from: { path: '^src/', pathNot: owners.map((owner) => `^${owner}`) },
  to: { path: `(^|^node:|node_modules/)${module}(/|$)` },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...folderRules,
    ...ownerRules,
    {
      name: 'contract-imports-only-zod',
      comment: 'the client SDK is made from the contract, so that it may need nothing but zod, not even Node',
      severity: 'error',
      from: { path: '^src/contract/' },
      to: { pathNot: ['^src/', '(^|node_modules/)zod(/|$)'] },
    },
    {
      name: 'client-needs-nothing',
      comment: 'the client runs in browsers, and of ours it takes types alone: no zod, no Node',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { pathNot: '^src/client/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'client-is-for-others',
      comment: 'the service does not call itself; the command line calls one that runs elsewhere',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(client|commands)/' },
      to: { path: '^src/client/' },
    },
    {
      name: 'logger-is-handed-in',
      comment: 'a logger is made once, in a composition root; everything else imports its type',
      severity: 'error',
      from: { path: '^src/', pathNot: compositionRoots },
      to: { path: '^src/logger\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'settings-are-handed-in',
      comment: 'each part declares the options it needs; only composition roots know where they come from',
      severity: 'error',
      from: { path: '^src/', pathNot: [compositionRoots, '^src/(config\\.ts$|settings/)'] },
      to: { path: '^src/((config|launcher|secrets)\\.ts$|settings/)' },
    },
    {
      name: 'settings-import-only-contract',
      comment: 'config, launcher, logger and secrets stand below everything that is wired with them',
      severity: 'error',
      from: { path: '^src/(config|launcher|logger|secrets)\\.ts$' },
      to: { path: '^src/', pathNot: '^src/(contract|settings)/' },
    },
    {
      name: 'start-imports-own-process',
      comment: 'api, worker and gateway never import one another, not even where they are wired',
      severity: 'error',
      from: { path: '^src/(api|worker|gateway)/start\\.ts$' },
      to: { path: '^src/(api|worker|gateway)/', pathNot: '^src/$1/' },
    },
    {
      name: 'start-is-imported-by-main',
      comment: 'a composition root is the top: only the command line and tests start it',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(main|(processes|commands)/[^/]+)\\.ts$' },
      to: { path: '^src/[^/]+/start\\.ts$' },
    },
    {
      name: 'main-is-imported-by-nobody',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^src/main\\.ts$' },
    },
    {
      name: 'home-imports',
      comment: 'a file outside the folders of the table would stand under no rule: give its folder a row',
      severity: 'error',
      from: { path: '^src/', pathNot: homes },
      to: {},
    },
    {
      name: 'home-imported',
      comment: 'see home-imports',
      severity: 'error',
      from: {},
      to: { path: '^src/', pathNot: homes },
    },
    {
      name: 'src-stands-alone',
      comment: 'what runs in production needs neither the tests nor the tools',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|script|bench|deploy|web)/' },
    },
    {
      name: 'no-development-package',
      comment:
        'production installs without devDependencies; an optional peer may be among them for the tests',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg'], dependencyTypesNot: ['type-only', 'npm-peer'] },
    },
    {
      name: 'no-circular',
      comment: 'modules that import each other cannot be understood, tested or replaced one at a time',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-unresolvable',
      comment: 'what cannot be found cannot be judged by the other rules',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    detectProcessBuiltinModuleCalls: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['node', 'import', 'default', 'types'],
    },
  },
};
