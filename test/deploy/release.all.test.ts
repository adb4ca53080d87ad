/** What a release hands out beside its image: the chart and Compose take the very image, by its digest. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TOOLS_PACKAGES } from 'soundpost-media/packaged-tools';
import type { Json } from 'soundpost-testing/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { projectFolder, readPage } from '../docs/markdown.ts';
import { run } from '../house/command.ts';
import { helm } from './chart.ts';

const NAME = 'ghcr.io/a/soundpost';
/** As a workflow writes what a step has found out. */
const found = (name: string): string => `\${{ steps.image.outputs.${name} }}`;
const digest = `sha256:${'0a'.repeat(32)}`;
const script = join(projectFolder, 'script/release-files');

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-release-'));
});
afterEach(() => rm(folder, { recursive: true }));

describe('script/release-files', { tags: 'helm' }, () => {
  it('fills the digest into the chart, and into what Compose reads', async () => {
    expect(await run(folder, script, [NAME, digest, folder])).toMatchObject({ code: 0 });
    const { version } = JSON.parse(readPage('package.json'));
    const values = ['--set', `secret.existingSecret=mine`];
    const { output } = await helm(['template', 'a', join(folder, `soundpost-${version}.tgz`), ...values]);
    const images = [...output.matchAll(/^ +image: (\S*soundpost\S*)$/gm)].map(([, image]) => image);
    expect(images).toEqual(Array.from({ length: 4 }, () => `${NAME}@${digest}`));
    const settings = await readFile(join(folder, 'release.env'), 'utf8');
    expect(settings).toBe(`SOUNDPOST_IMAGE=${NAME}:${version}\nSOUNDPOST_DIGEST=@${digest}\n`);
    const { services } = parse(await readFile(join(folder, 'docker-compose.yml'), 'utf8'), { merge: true });
    for (const name of settings.match(/^\w+/gm) ?? []) expect(services.api.image).toContain(`\${${name}:-`);
  });

  it('refuses what is no digest', async () => {
    const { code, output } = await run(folder, script, [NAME, 'sha256:1234', folder]);
    expect([code, output]).toEqual([2, expect.stringContaining('"sha256:1234" is no digest')]);
  });
});

describe('the workflows', () => {
  const workflow = (name: string): Json => parse(readPage(`.github/workflows/${name}.yml`));
  const steps = (name: string): Json[] =>
    Object.values<Json>(workflow(name).jobs).flatMap((job) => job.steps);

  it('pin each action by its commit, and say which version that is', () => {
    for (const name of ['ci', 'release'])
      for (const [line] of readPage(`.github/workflows/${name}.yml`).matchAll(/uses: .*/g))
        expect(line).toMatch(/^uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('release: publishes the packages of tools with their sources, before what depends on them', () => {
    const { tools, packages } = workflow('release').jobs;
    const machines = tools.strategy.matrix.include.map(({ machine }: Json) => `soundpost-tools-${machine}`);
    expect(machines).toEqual(TOOLS_PACKAGES);
    const commands = steps('release').map((step) => step.run ?? '');
    expect(commands.join('\n')).toMatch(/apt-get source .*source\/versions/);
    expect(packages.needs).toContain('tools');
    expect(commands.at(-1)).toMatch(/in \.\/soundpost-tools-\*\.tgz \.\/dist /);
  });

  it('release: signs the image, its SBOM and the files, by the digest that the chart gets', () => {
    const all = steps('release');
    const signed = all.filter(({ uses }) => /^actions\/attest-/.test(uses)).map((step) => step.with);
    const image = {
      'subject-name': found('name'),
      'subject-digest': found('digest'),
      'push-to-registry': true,
    };
    expect(signed).toEqual([
      image,
      { ...image, 'sbom-path': 'sbom.cdx.json' },
      { 'subject-path': 'release/*' },
    ]);
    const commands = all.map((step) => step.run ?? '').join('\n');
    expect(commands).toContain(
      `./script/release-files '${image['subject-name']}' '${image['subject-digest']}' release`,
    );
    expect(commands).toMatch(/npm sbom .*>sbom\.cdx\.json/);
    expect(workflow('release').jobs.release.permissions).toMatchObject({
      attestations: 'write',
      'id-token': 'write',
    });
  });
});
