// @ts-check
// The rule of imports beside the doors of the packages (docs/architecture.md). Run by script/import-rules.ts, which adds what this
// checker cannot say: no relative import leaves a package, and a package imports only what its package.json names.

/** Modules that few places may import: what opens sockets, starts programs or knows the queue has one owner. */
const owners = {
  child_process: ['packages/media/src/(tool-process|starter)\\.ts', 'packages/kit/src/redis/embedded\\.ts'],
  bullmq: ['src/jobs/', 'src/followups/'],
  // Outbound opens sockets; the others look at addresses, listen, or are clients of configured services.
  net: [
    'packages/outbound/',
    'packages/kit/src/(http/|observe/metrics/server\\.ts|storage/s3-bucket\\.ts)',
    'src/(api/middleware/fixed-headers|gateway/start)\\.ts',
    'src/cli/',
  ],
  // The clients of the gateway and of the transcriber talk to addresses of the operator's.
  undici: [
    'packages/outbound/',
    'src/followups/kinds/gateway-client\\.ts',
    'src/followups/transcripts/client\\.ts',
  ],
};

/** @type {import('dependency-cruiser').IForbiddenRuleType[]} */
const ownerRules = Object.entries(owners).map(([module, places]) => ({
  name: `${module}-owner`,
  comment: `${module} may be imported only in ${places.join(', ').replaceAll('\\', '')}`,
  severity: 'error',
  // What tests are made of may start programs and listen.
  from: {
    path: '^(src|packages)/',
    pathNot: [...places, 'packages/(testing|[^/]+/test)/'].map((place) => `^${place}`),
  },
  to: { path: `(^|^node:|node_modules/)${module}(/|$)` },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...ownerRules,
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
