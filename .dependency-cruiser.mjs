// @ts-check
// Who may import whom. Folder by folder as docs/architecture.md has it; test/house/import-rules.all.test.ts plants a breach
// of every rule. Run by script/import-rules.ts, which also makes sure that the checker has read every file.

const storageInterface = 'storage/(incoming|storage|workspaces)\\.ts$';
const diskSpace = 'storage/disk-(claim|full|space)\\.ts$';
// What is told of the work, without who listens: handed in like a logger.
const observer = 'observe/(metrics/observer|tracing/tracing)\\.ts$';
const processHome = 'process-home\\.ts$';
const ownTime = 'own-time\\.ts$';

/** What the files of a folder may import of ours, besides their own folder. `start.ts` is not among them: see below. */
const mayImport = {
  settings: [],
  signing: [],
  client: [],
  redis: [ownTime],
  tenants: ['redis/'],
  queue: ['signing/', 'redis/', 'tenants/', observer, ownTime, processHome],
  uploads: ['redis/', 'queue/bullmq-internals\\.ts$'],
  janitor: ['redis/', 'queue/', 'uploads/'],
  deliveries: ['signing/', 'redis/', 'queue/', 'outbound/', observer],
  storage: [ownTime, processHome],
  outbound: [ownTime],
  http: ['redis/'],
  'observe/metrics': ['signing/', 'http/'],
  'observe/tracing': ['http/'],
  'observe/board': ['queue/', 'redis/', 'signing/', 'http/'],
  media: [],
  sparse: ['media/sniff\\.ts$'],
  streams: ['media/(failure|sniff|track-choice)\\.ts$', 'sparse/mp4/(boxes|fields)\\.ts$'],
  transcripts: ['media/notes/(pauses|pcm-file)\\.ts$', 'outbound/exchange\\.ts$'],
  'cli/doctor': ['redis/', diskSpace, 'media/'],
  api: [
    'signing/',
    'redis/',
    'tenants/',
    'queue/',
    'uploads/',
    'deliveries/',
    storageInterface,
    diskSpace,
    'outbound/',
    'media/',
    'http/',
  ],
  worker: [
    'signing/',
    'redis/',
    'tenants/',
    'queue/',
    'uploads/',
    'deliveries/',
    storageInterface,
    diskSpace,
    'outbound/',
    'media/',
    'sparse/',
    'streams/',
    'transcripts/',
    'http/',
    observer,
  ],
  gateway: [
    'signing/',
    'redis/',
    'deliveries/',
    storageInterface,
    'outbound/',
    'media/',
    'http/',
    observer,
    processHome,
  ],
};

/** Packages and built-in modules that few places may import: what comes from them has one owner. */
const onlyIn = {
  child_process: ['src/media/(tool-process|starter)\\.ts', 'src/redis/embedded\\.ts'],
  bullmq: ['src/queue/', 'src/deliveries/'],
  ioredis: ['src/redis/'],
  'fluent-ffmpeg': ['src/media/'],
  '@aws-sdk': ['src/storage/s3-(abandoned|bucket|incoming|reader|signed-url|storage)\\.ts'],
  pino: ['src/observe/logger\\.ts'],
  'prom-client': ['src/observe/metrics/registry\\.ts'],
  '@opentelemetry': ['src/observe/tracing/'],
  'bullmq-otel': ['src/observe/tracing/'],
  '@bull-board': ['src/observe/board/'],
  '@xmpp': ['src/gateway/transports/xmpp/'],
  baileys: ['src/gateway/transports/whatsapp/'],
  // Sockets: outbound opens them; the others look at addresses, listen, or are clients of configured services and of this machine.
  net: [
    'src/outbound/',
    'src/http/',
    'src/gateway/start\\.ts',
    'src/observe/metrics/access\\.ts',
    'src/api/middleware/fixed-headers\\.ts',
    'src/storage/s3-bucket\\.ts',
    'src/cli/',
  ],
  tls: ['src/gateway/transports/xmpp/guarded-client\\.ts'],
  https: [
    'src/gateway/transports/whatsapp/guarded-requests\\.ts',
    'src/storage/s3-bucket\\.ts',
    'src/cli/doctor/elsewhere\\.ts',
  ],
  dgram: ['src/outbound/'],
  // Requests to addresses that others chose go through outbound; clients of configured services are listed after it.
  undici: ['src/outbound/', 'src/worker/completion/gateway-client\\.ts', 'src/transcripts/client\\.ts'],
};

/** Doors of what is loaded when it is first used. */
const optionalParts = [
  'api/uploads/tus\\.ts$',
  'gateway/transports/(xmpp|whatsapp)/',
  'media/loudness/normalise\\.ts$',
  'media/ogg/opus-length\\.ts$',
  'media/parallel/join\\.ts$',
  'observe/board/board\\.ts$',
  'observe/tracing/open-telemetry\\.ts$',
  'outbound/(fetch-bytes|fetching|pieces|proxy|ranges)\\.ts$',
  'storage/s3-open\\.ts$',
  'worker/(audio-parts|stream-source|completion/transcript)\\.ts$',
].map((path) => `^src/${path}`);

const compositionRoots =
  '^src/(main|backing-services|resources|root-secret|(processes|cli)/[^/]+|[^/]+/start)\\.ts$';
const besidesFolders =
  '(cli|processes)/[^/]+|backing-services|config|launcher|observe/logger|main|own-time|process-home|resources|root-secret|secrets';
const homes = `^src/((${Object.keys(mayImport).join('|')})/|(${besidesFolders})\\.ts$)`;

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
const folderRules = Object.entries(mayImport).map(([folder, others]) => ({
  name: `${folder}-imports`,
  comment: `src/${folder} may import, of ours: ${['its own folder', ...others].join(', ')}, and the type Logger`,
  severity: 'error',
  from: { path: `^src/${folder}/`, pathNot: compositionRoots },
  to: {
    path: '^src/',
    pathNot: [`${folder}/`, ...others, 'observe/logger\\.ts$'].map((path) => `^src/${path}`),
  },
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
      from: { path: '^packages/contract/' },
      to: { pathNot: ['^packages/contract/', '(^|node_modules/)zod(/|$)'] },
    },
    {
      name: 'one-router',
      comment: 'routes are mounted by src/http/routes.ts; everybody else takes types alone of express',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/http/' },
      to: {
        path: '(^|node_modules/)(express|router|path-to-regexp)(/|$)',
        dependencyTypesNot: ['type-only'],
      },
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
      from: { path: '^src/', pathNot: '^src/(client|cli)/' },
      to: { path: '^src/client/' },
    },
    {
      name: 'one-delivery-engine',
      comment: 'whatever signs a webhook delivers one, and that src/deliveries does for everybody',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/deliveries/' },
      to: { path: '^src/deliveries/sign-webhook\\.ts$' },
    },
    {
      name: 'logger-is-handed-in',
      comment: 'a logger is made once, in a composition root; everything else imports its type',
      severity: 'error',
      from: { path: '^src/', pathNot: compositionRoots },
      to: { path: '^src/observe/logger\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'settings-are-handed-in',
      comment: 'each part declares the options it needs; only composition roots know where they come from',
      severity: 'error',
      from: { path: '^src/', pathNot: [compositionRoots, '^src/(config\\.ts$|settings/)'] },
      to: { path: '^src/((backing-services|config|launcher|resources|root-secret|secrets)\\.ts$|settings/)' },
    },
    {
      name: 'settings-import-nothing',
      comment: 'config, launcher, logger and secrets stand below everything that is wired with them',
      severity: 'error',
      from: { path: '^src/(config|launcher|observe/logger|secrets)\\.ts$' },
      to: { path: '^src/', pathNot: '^src/settings/' },
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
      from: { path: '^src/', pathNot: '^src/(main|cli/[^/]+)\\.ts$' },
      to: { path: '^src/[^/]+/start\\.ts$' },
    },
    {
      name: 'optional-part-is-loaded-on-demand',
      comment: 'what most services or jobs do not use is loaded by `await import()` where it is first used',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/gateway/transports/(xmpp|whatsapp)/' },
      to: { path: optionalParts, dynamic: false, dependencyTypesNot: ['type-only'] },
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
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg'],
        dependencyTypesNot: ['type-only', 'npm-peer'],
        // A package of ours comes along in the bundle.
        pathNot: '^packages/',
      },
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
