/**
 * Makes of src, and of the packages of ours that it uses, what the npm package has in dist: JavaScript, since Node strips no types below node_modules.
 * Each module stays a file of its own, in the place that it has in src: some are found by their path, and what a command does not need is not loaded.
 * The Lua scripts, which modules read, lie beside them as they do in src.
 *
 *   node script/build-package.ts <folder>             src
 *   node script/build-package.ts <folder> <file>      what a library's front needs
 */
import { cpSync, globSync } from 'node:fs';
import { resolve } from 'node:path';
import { rolldown } from 'rolldown';

const root = resolve(import.meta.dirname, '..');
const [folder = '', front] = process.argv.slice(2);

const READER = 'packages/media/src/reading/reader-process.ts';

const build = await rolldown({
  cwd: root,
  // The thread and the reader are found by their paths.
  input: [...(front === undefined ? ['src/main.ts', 'src/cli/loop-watchdog-thread.ts'] : [front]), READER],
  platform: 'node',
  // npm installs what others have made.
  external: (id) => !/^(\.|\/|src\/|packages\/|soundpost-)/.test(id),
  treeshake: false,
});
await build.write({
  dir: folder,
  format: 'esm',
  ...(front === undefined ? { preserveModules: true, preserveModulesRoot: 'src' } : {}),
  entryFileNames: '[name].js',
});
if (front === undefined) {
  for (const path of globSync(['src/**/*.lua', 'packages/*/src/**/*.lua'], { cwd: root })) {
    cpSync(resolve(root, path), resolve(folder, path.replace(/^src\//, '')));
  }
}
