/**
 * Checks package-lock.json beyond what `npm ci` does: every package has a SHA-512 of its bytes, and none names where it comes from,
 * so that all of them come from the registry that npm is set to use, and the file says nothing about anybody's machine.
 */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';

const LockFile = z.object({
  lockfileVersion: z.literal(3),
  packages: z.record(
    z.string(),
    z.object({
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      link: z.boolean().optional(),
    }),
  ),
});

/** 64 bytes in base64. */
const SHA512 = /^sha512-[A-Za-z0-9+/]{86}==$/;

const { packages } = LockFile.parse(JSON.parse(await readFile('package-lock.json', 'utf8')));
// The project itself and its workspaces, in their folders and as links to them, are not fetched.
const entries = Object.entries(packages).filter(
  ([path, { link = false }]) => path.includes('node_modules/') && !link,
);
const faults = entries.flatMap(([path, { resolved, integrity = '' }]) => [
  ...(SHA512.test(integrity) ? [] : [`${path}: has no sha512 integrity`]),
  ...(resolved === undefined ? [] : [`${path}: names where it comes from: ${resolved}`]),
]);
if (faults.length > 0) {
  process.stdout.write(`${faults.join('\n')}\n\n`);
  process.stdout.write(
    'Make the file anew with: npm install --package-lock-only --omit-lockfile-registry-resolved\n',
  );
}
process.stdout.write(`${entries.length} packages, ${faults.length} faults\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
