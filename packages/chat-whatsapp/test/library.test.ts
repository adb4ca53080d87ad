import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

import { INSTALL_COMMAND } from '../src/library.ts';

const run = promisify(execFile);
const library = new URL('../src/library.ts', import.meta.url).href;
const withoutBaileys = fileURLToPath(new URL('without-baileys.ts', import.meta.url));

/** Runs a program that may use `load`, the loader of the library. Answers everything that it wrote. */
async function output(program: string, ...flags: string[]): Promise<string> {
  const text = `const { loadBaileys: load } = await import(${JSON.stringify(library)});\n${program}`;
  const { stdout, stderr } = await run(process.execPath, [...flags, '--input-type=module', '--eval', text]);
  return stdout + stderr;
}

describe('the package baileys', () => {
  it('is named with how to install it where it is missing', async () => {
    const written = await output(
      'await load().catch((error) => process.stdout.write(JSON.stringify([error.code, error.messages])));',
      '--import',
      withoutBaileys,
    );
    expect(JSON.parse(written)).toEqual([
      'unsupported',
      [`the whatsapp transport needs a package that is not installed; install it with: ${INSTALL_COMMAND}`],
    ]);
  });

  it('is the version that package.json names, and is optional there', async () => {
    const text = await readFile(new URL('../../../package.json', import.meta.url), 'utf8');
    const { peerDependencies, peerDependenciesMeta, devDependencies, dependencies } = JSON.parse(text);
    expect(INSTALL_COMMAND).toMatch(new RegExp(` baileys@${peerDependencies.baileys}$`));
    expect(devDependencies.baileys).toBe(peerDependencies.baileys);
    expect(peerDependenciesMeta).toEqual({ baileys: { optional: true } });
    expect(dependencies).not.toHaveProperty('baileys');
  });

  it('prints no session with its keys to the console', async () => {
    // The package is reached as Baileys reaches it.
    const record = createRequire(createRequire(import.meta.url).resolve('baileys')).resolve(
      'libsignal/src/session_record.js',
    );
    const program = (first: string): string => `
      ${first}
      const { default: SessionRecord } = await import(${JSON.stringify(record)});
      const session = { indexInfo: { closed: -1 }, privKey: 'a-secret-that-stands-out' };
      new SessionRecord().closeSession(session);
      console.info('something else');`;
    expect(await output(program(''))).toContain('a-secret-that-stands-out');
    expect(await output(program('await load();'))).toBe('something else\n');
  });
});
