// @ts-check
// The rule of imports beside the doors of the packages (docs/architecture.md). Run by script/import-rules.ts, which adds what this
// checker cannot say: no relative import leaves a package, and a package imports only what its package.json names.
import { owners } from './script/owners.ts';

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
    // Checked by n8n's own tools: script/n8n.
    exclude: { path: '^packages/n8n-nodes-soundpost' },
    tsPreCompilationDeps: true,
    detectProcessBuiltinModuleCalls: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['node', 'import', 'default', 'types'],
    },
  },
};
