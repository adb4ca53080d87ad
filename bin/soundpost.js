#!/usr/bin/env -S node --max-semi-space-size=4
// The command. Plain JavaScript that an older Node can read as well, so that it is refused before anything else is loaded.
import { existsSync, readFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { join } from 'node:path';
import process from 'node:process';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const least = Number(/\d+/.exec(engines.node)[0]);
// A checkout has the source, the npm package what was made of it.
const source = new URL('../src/main.ts', import.meta.url);
const isCheckout = existsSync(source);

const remedy = isCheckout
  ? 'start ./script/soundpost, which fetches one'
  : `install Node ${least} or newer from https://nodejs.org`;
if (Number.parseInt(process.versions.node, 10) < least) {
  refuse(`Node ${process.versions.node} is too old`);
} else if (isCheckout && !process.features.typescript) {
  // Debian's, for instance.
  refuse(`this Node ${process.versions.node} was built without TypeScript`);
} else {
  keepCompiled();
  await import(isCheckout ? source.href : new URL('../dist/main.js', import.meta.url).href);
}

function refuse(reason) {
  process.stderr.write(`soundpost: ${reason}: ${remedy}.\n`);
  process.exitCode = 2;
}

// Half of a start is compiling. Where NODE_COMPILE_CACHE is set, Node keeps what it compiled already.
function keepCompiled() {
  const { HOME, XDG_CACHE_HOME } = process.env;
  const caches = XDG_CACHE_HOME || (HOME && join(HOME, '.cache'));
  if (caches && !nodeModule.getCompileCacheDir()) nodeModule.enableCompileCache(join(caches, 'soundpost'));
}
