/** What docker-compose.yml gives to which process, and the order in which its page has it replaced. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { secretReaders } from 'soundpost-kit/settings/environment';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { projectFolder, readPage } from '../docs/markdown.ts';

const { services } = parse(readFileSync(join(projectFolder, 'docker-compose.yml'), 'utf8'), { merge: true });
const parts = ['api', 'gateway', 'worker'] as const;

it.each(parts)('%s gets no secret that it does not read', (part) => {
  const given = Object.keys(services[part].environment).filter((name) => name in secretReaders);
  expect(given.length).toBeGreaterThan(1);
  const foreign = given.filter(
    (name) => !(secretReaders[name as keyof typeof secretReaders] as readonly string[]).includes(part),
  );
  expect(foreign).toEqual([]);
});

it('every container turns its log over, and a digest names the image where one is set', () => {
  for (const [name, service] of Object.entries<(typeof services)[string]>(services))
    expect([name, service.logging]).toEqual([
      name,
      {
        driver: 'json-file',
        options: { 'max-size': expect.stringContaining('LOG_MAX_SIZE:-'), 'max-file': '5' },
      },
    ]);
  for (const part of parts)
    expect(services[part].image).toMatch(/^\$\{SOUNDPOST_IMAGE:-soundpost\}\$\{SOUNDPOST_DIGEST:-\}$/);
});

it('the update of the page replaces the parts in the order of docs/how-to/upgrade.md', () => {
  const order = [...readPage('docs/how-to/upgrade.md').matchAll(/^\d\. \*\*(?:The )?(\w+?)s?\*\*/gm)].map(
    ([, name = '']) => name.toLowerCase(),
  );
  expect(order.toSorted()).toEqual([...parts]);
  const section = readPage('docs/how-to/production-compose.md').split(/^## Update$/m)[1] ?? '';
  const done = [...section.matchAll(/^docker compose up .* (\w+)$/gm)].map(([, name]) => name);
  expect(done).toEqual(order);
  // Else Compose would start what the part depends on anew, or all of them.
  expect(section.match(/^docker compose up .*--no-deps/gm)).toHaveLength(parts.length);
});
