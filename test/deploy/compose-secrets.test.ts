/** Which secrets docker-compose.yml gives to which process. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { projectFolder } from '../docs/markdown.ts';

const SECRET = /KEY|TOKEN|PASSWORD|SECRET/;

it('a worker and the gateway get no secret that the API alone uses', () => {
  const { services } = parse(readFileSync(join(projectFolder, 'docker-compose.yml'), 'utf8'), {
    merge: true,
  });
  const shared = ['SECRET_KEY', 'SECRET_KEY_FILE', 'GATEWAY_API_KEY', 'METRICS_TOKEN'];
  const secretsOf = (service: string): string[] =>
    Object.keys(services[service].environment).filter((name) => SECRET.test(name));
  expect(secretsOf('worker')).toEqual(shared);
  expect(secretsOf('gateway')).toEqual(shared);
  expect(secretsOf('api')).toEqual([...shared, 'BOOTSTRAP_API_KEY']);
});
