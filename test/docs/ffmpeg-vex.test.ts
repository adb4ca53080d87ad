/** ffmpeg.openvex.json, as it stands, against what script/ffmpeg builds. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { builtParts } from '../../script/ffmpeg-vex.ts';
import { projectFolder } from './markdown.ts';

const Statement = z.object({
  vulnerability: z.object({ name: z.string().regex(/^(CVE-\d{4}|DFVULN)-\d+$/) }),
  status: z.enum(['not_affected', 'affected', 'fixed']),
  justification: z.string().optional(),
  status_notes: z.string().regex(/^In \w+ \w+[,:]/),
});
const { statements } = z
  .object({ statements: z.array(Statement) })
  .parse(JSON.parse(readFileSync(join(projectFolder, 'ffmpeg.openvex.json'), 'utf8')));

const built = builtParts();

/** The parts that it calls built, or not built. */
function says(isPresent: boolean): string[] {
  return statements
    .filter(({ justification }) => isPresent === (justification !== 'vulnerable_code_not_present'))
    .map(({ status_notes }) => status_notes.slice('In '.length).split(/[,:]/, 1)[0] ?? '');
}

function isBuilt(part: string): boolean {
  const [kind = '', name = ''] = part.split(' ');
  const names = built[kind];
  if (names === undefined) throw new Error(`no such kind of part: ${part}`);
  return names.includes(name);
}

describe('what scanners are told', () => {
  it('calls a part not built that is not', () => {
    expect(says(false).length).toBeGreaterThan(50);
    expect(says(false).filter(isBuilt)).toEqual([]);
  });

  it('judges each flaw of a part that is built', () => {
    expect(says(true).length).toBeGreaterThan(10);
    expect(says(true).filter((part) => !isBuilt(part))).toEqual([]);
  });

  it('has one judgement of each flaw', () => {
    const names = statements.map(({ vulnerability }) => vulnerability.name);
    expect(names).toEqual([...new Set(names)]);
  });
});
