#!/usr/bin/env -S node --max-semi-space-size=4
// The command. Plain JavaScript that an old Node reads as well, so that it can say what is missing before anything else is loaded.
import { existsSync, readFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const least = Number(/\d+/.exec(engines.node)[0]);
if (Number.parseInt(process.versions.node, 10) < least) {
  process.stderr.write(
    `soundpost: Node ${process.versions.node} is too old: install Node ${least} or newer (https://nodejs.org).\n`,
  );
  process.exitCode = 2;
} else {
  // What Node compiled, kept in a folder of this user's: a start takes half the time. The folder of NODE_COMPILE_CACHE is in use already.
  if (!process.env.NODE_COMPILE_CACHE) {
    const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
    nodeModule.enableCompileCache(join(caches, 'soundpost'));
  }
  // A checkout has the source, the npm package what was made of it.
  const source = new URL('../src/main.ts', import.meta.url);
  await import(existsSync(source) ? source.href : new URL('../dist/main.js', import.meta.url).href);
}
