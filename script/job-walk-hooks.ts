/** Loaded before a service by script/job-walk.ts: notes which functions of ours run, in the order in which they first do, and says so when it is asked. */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { functionsOf } from './functions-of.ts';

declare global {
  var ranFunction: (id: number) => void;
}

const known: { readonly file: string; readonly name: string }[] = [];
const loaded: string[] = [];
let ran = new Set<number>();
globalThis.ranFunction = (id) => void ran.add(id);

registerHooks({
  load(url, context, nextLoad) {
    const path = url.startsWith('file:') ? fileURLToPath(url) : '';
    const file = relative(process.cwd(), path);
    if (!/^(src|packages\/(?!testing)[^/]+\/src)\/.*\.ts$/.test(file)) return nextLoad(url, context);
    loaded.push(file);
    return {
      format: 'module-typescript',
      shortCircuit: true,
      source: instrumented(file, readFileSync(path)),
    };
  },
});

function instrumented(file: string, source: Buffer): string {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const { name, bodyStart } of functionsOf(source).sort(
    (one, other) => one.bodyStart - other.bodyStart,
  )) {
    pieces.push(source.subarray(at, bodyStart), Buffer.from(`ranFunction(${known.length});`));
    known.push({ file, name });
    at = bodyStart;
  }
  return Buffer.concat([...pieces, source.subarray(at)]).toString();
}

process.on('message', (message) => {
  if (message !== 'ran') return;
  process.send?.({ loaded, ran: [...ran].map((id) => ({ id, ...known[id] })) });
  ran = new Set();
});
process.channel?.unref();
