/** Node: whether it is new enough, and can run the code as it is here. */
import { type Finding, ok } from './check.ts';
import type { System } from './system.ts';
import { isOlder } from './version.ts';

interface NodeFacts {
  /** `process.versions.node` */
  readonly version: string;
  /** The least that is supported, such as `24.0`: package.json's `engines`. */
  readonly least: string;
  /** Whether what runs is TypeScript, of a checkout, or what was made of it for the package. */
  readonly runsTypeScript: boolean;
  /** `process.features.typescript` */
  readonly canRunTypeScript: boolean;
}

export function checkNode(facts: NodeFacts, system: System): Finding[] {
  const { version, least, runsTypeScript, canRunTypeScript } = facts;
  const isOld = isOlder(version, least);
  if (isOld || (runsTypeScript && !canRunTypeScript)) {
    return [
      {
        verdict: 'fault',
        found: isOld
          ? `Node ${version} is too old: ${least} or newer is needed`
          : `Node ${version} does not run TypeScript as it is`,
        remedy: 'install Node 24 (https://nodejs.org)',
        command: runsTypeScript ? './script/bootstrap' : system.install('node'),
      },
    ];
  }
  return [ok(`${version}, runs ${runsTypeScript ? 'TypeScript as it is' : 'compiled code'}`)];
}
