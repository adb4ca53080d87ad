/** The environment: every fault of it, each with what mends it. */
import type { Finding } from './check.ts';
import { ok } from './check.ts';

export interface Fault {
  readonly variable: string;
  readonly rule: string;
}

/** @param count of the variables that are set */
export function checkConfiguration(faults: readonly Fault[], count: number): Finding[] {
  if (faults.length === 0) {
    return [ok(count === 0 ? 'nothing is set: the defaults hold' : `${count} variables are set, and sound`)];
  }
  return faults.map(({ variable, rule }) => ({
    verdict: 'fault',
    found: `${variable}: ${rule}`,
    remedy: `see ${variable} in docs/configuration.md`,
    command: mending(variable, rule),
  }));
}

/** Secrets are made where they are missing or too short; what means nothing, or is wrong, is better unset. */
function mending(variable: string, rule: string): string {
  const isSecret = /^(SECRET_KEY|GATEWAY_API_KEY|ADMIN_KEY|METRICS_TOKEN)$/.test(variable);
  if (isSecret) return `export ${variable}="$(openssl rand -hex 32)"`;
  const other = /must be set together with (\w+)/.exec(rule)?.[1];
  return `unset ${variable}${other === undefined ? '' : ` ${other}`}`;
}
