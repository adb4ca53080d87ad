/**
 * Makes of web/ what browsers get, in web/dist: one folder a page, with its HTML, one style sheet and one script; what a page needs only in some views is in
 * scripts of their own. Takes half a second, and `script/bootstrap` has it done where something has changed (docs/decisions/0041-console-in-typescript.md).
 */
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type BuildOptions, build, type Plugin } from 'esbuild';

const WEB = new URL('../web/', import.meta.url);
const OUT = new URL('dist/', WEB);
const PAGES = fileURLToPath(WEB);
const CONTRACT = fileURLToPath(new URL('../packages/contract/src/', import.meta.url));

/**
 * Pages take tables of the contract: formats, errors, scopes. The schemas beside them would bring zod into the browser, so a module of the contract that
 * imports anything is replaced by those of its values that are data.
 */
const contractTables: Plugin = {
  name: 'contract tables',
  setup({ onLoad, onResolve }) {
    // The doors of the packages are the only way out of web.
    onResolve({ filter: /^\./ }, ({ path, resolveDir }) =>
      resolveDir.startsWith(PAGES) && !resolve(resolveDir, path).startsWith(PAGES)
        ? { errors: [{ text: `a page takes what is outside of web by a package's name, not ${path}` }] }
        : undefined,
    );
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      if (!path.startsWith(CONTRACT) || !/^import /m.test(await readFile(path, 'utf8'))) return undefined;
      const tables = Object.entries(await import(pathToFileURL(path).href)).filter(([, value]) =>
        isData(value),
      );
      const contents = tables
        .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`)
        .join('\n');
      return { contents, loader: 'js' };
    });
  },
};

const MAIN = fileURLToPath(new URL('console/main.tsx', WEB));

/**
 * A view that is fetched when it is opened uses what the page has anyway. esbuild makes a file for each set of views that have something in common, and
 * each is a request before anything is seen; where every view is said to need all of the page's own modules, these are one file.
 */
const onePage: Plugin = {
  name: 'one page',
  setup({ onLoad, onResolve }) {
    const views = new Set<string>();
    onResolve({ filter: /^\.\.?\/.*\.tsx$/ }, ({ kind, path, resolveDir }) => {
      if (kind === 'dynamic-import') views.add(resolve(resolveDir, path));
      return undefined;
    });
    onLoad({ filter: /\.tsx$/ }, async ({ path }) =>
      views.has(path)
        ? { contents: `${await readFile(path, 'utf8')}\nimport ${JSON.stringify(MAIN)};`, loader: 'tsx' }
        : undefined,
    );
  },
};

function isData(value: unknown): boolean {
  if (typeof value === 'function') return false;
  if (typeof value !== 'object' || value === null) return true;
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  return isPlain && !('_zod' in value) && Object.values(value).every(isData);
}

const shared: BuildOptions = {
  outdir: fileURLToPath(OUT),
  bundle: true,
  minify: true,
  target: ['es2022', 'chrome123', 'firefox120', 'safari17.5'],
  plugins: [contractTables],
  loader: { '.svg': 'dataurl' },
  logLevel: 'warning',
  // Of a module that was replaced, a page would call undefined.
  logOverride: { 'import-is-undefined': 'error' },
};

await rm(OUT, { recursive: true, force: true });
const { metafile } = await build({
  ...shared,
  entryPoints: [
    { in: MAIN, out: 'console/console' },
    { in: fileURLToPath(new URL('console/style/console.css', WEB)), out: 'console/console' },
  ],
  format: 'esm',
  splitting: true,
  jsx: 'automatic',
  jsxImportSource: 'preact',
  chunkNames: 'console/parts/[name]-[hash]',
  plugins: [contractTables, onePage],
  metafile: true,
});
await build({
  ...shared,
  entryPoints: entries({ 'reference/reference': 'reference/reference.ts' }),
  format: 'iife',
});
await build({ ...shared, entryPoints: entries({ 'inbox/inbox': 'inbox/inbox.ts' }), format: 'esm' });
await cp(new URL('inbox/index.html', WEB), new URL('inbox/index.html', OUT));
// In the page itself, where it is run before anything is shown.
const { outputFiles } = await build({
  ...shared,
  entryPoints: [fileURLToPath(new URL('console/first-paint.ts', WEB))],
  format: 'iife',
  write: false,
});
const html = await readFile(new URL('console/index.html', WEB), 'utf8');
const icon = await readFile(new URL('shared/icon.svg', WEB), 'base64');
await writeFile(
  new URL('console/index.html', OUT),
  html
    .replace('FIRST_PAINT', outputFiles[0]?.text.trim() ?? '')
    .replace('SCRIPT', scriptOfConsole())
    .replace('ICON', `data:image/svg+xml;base64,${icon}`),
);
await rm(new URL('console/console.js', OUT));
await cp(new URL('shared/icon.svg', WEB), new URL('inbox/icon.svg', OUT));
// By its age script/pages sees whether something was changed since.
await writeFile(new URL('made', OUT), '');

/** Address of the file that has the page's own modules. What esbuild writes as the entry only imports it, and would be one more way there and back. */
function scriptOfConsole(): string {
  const main = relative('.', MAIN);
  const [path, { imports }] = Object.entries(metafile.outputs).find(([, { inputs }]) => main in inputs) ?? [
    '',
    { imports: [] },
  ];
  const needed = imports.filter(({ kind }) => kind === 'import-statement');
  if (path === '' || needed.length > 0) {
    throw new Error(`the console's script is not one file: it imports ${needed.map((one) => one.path)}`);
  }
  return relative(fileURLToPath(OUT), path);
}

/** @param files by what each becomes, both without the folder */
function entries(files: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(files).map(([name, file]) => [name, fileURLToPath(new URL(file, WEB))]),
  );
}
