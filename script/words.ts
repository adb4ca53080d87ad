/**
 * Checks the words of all texts: phrases that may not come back (script/words/phrases.yaml), terms, the length of sentences,
 * and the reading ease of each page, which may not fall below its floor in script/words/reading-ease.json.
 *
 *     node script/words.ts [--floors] [part of a file's path]
 *
 * --floors writes the floors: 3 below what each page has.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { refusals } from './words/check.ts';
import { textsOf } from './words/texts.ts';

const FLOORS = join(import.meta.dirname, 'words/reading-ease.json');

/** Of a page that has no floor of its own yet. */
const LOWEST = 60;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { floors: { type: 'boolean', default: false } },
});
const [part = ''] = positionals;
const texts = textsOf(resolve(import.meta.dirname, '..')).filter(({ file }) => file.includes(part));
const floors = z.record(z.string(), z.number()).parse(JSON.parse(readFileSync(FLOORS, 'utf8')));
let refused = 0;
for (const text of texts) {
  const ease = {
    floor: values.floors ? LOWEST : (floors[text.file] ?? LOWEST),
    measured(value: number) {
      if (values.floors) floors[text.file] = Math.max(LOWEST, Math.floor(value) - 3);
    },
  };
  for (const { line, rule, message } of await refusals(text, text.isPage ? ease : undefined)) {
    refused += 1;
    process.stdout.write(`${text.file}:${line}: ${rule}: ${message}\n`);
  }
}
if (values.floors) {
  const kept = Object.entries(floors).filter(
    ([page]) => texts.some(({ file }) => file === page) || part !== '',
  );
  writeFileSync(FLOORS, `${JSON.stringify(Object.fromEntries(kept.toSorted()), null, 2)}\n`);
}
process.stdout.write(`${texts.length} texts, ${refused} refused\n`);
process.exitCode = refused === 0 ? 0 : 1;
