/** The corpus: every crafted file once, and damaged ones until there are as many as are wanted. */
import { writeFile } from 'node:fs/promises';
import { type BaseFile, baseFiles, type Codec } from 'soundpost-testing/base-files';
import { mutations } from 'soundpost-testing/mutations';
import { seeded } from 'soundpost-testing/random';
import { bombs, noFiles } from './bombs.ts';
import { boxFiles } from './boxes.ts';
import type { HostileFile } from './hostile-file.ts';
import { playlistFiles } from './playlists.ts';

const SEED = 6;

export interface CorpusOptions {
  readonly count: number;
  /** Of the media that the others are made from. */
  readonly codecs: readonly Codec[];
  /** Absolute path of a playable file that nobody may read. */
  readonly canary: string;
  /** Base address of a server that nobody may reach. */
  readonly url: string;
}

export async function corpus(options: CorpusOptions): Promise<HostileFile[]> {
  const { count, codecs, canary, url } = options;
  const bases = await baseFiles(codecs);
  const crafted = [
    ...bases.map(wholeFile),
    ...boxFiles(canary),
    ...playlistFiles(canary, url),
    ...noFiles(canary),
    ...(await bombs()),
  ];
  const damaged = Array.from({ length: Math.max(0, count - crafted.length) }, (_, index) =>
    damagedFile(bases, index),
  );
  return [...crafted, ...damaged];
}

/** Each has a seed of its own, so that a longer corpus begins with the shorter one. */
function damagedFile(bases: readonly BaseFile[], index: number): HostileFile {
  const random = seeded(SEED * 1_000_003 + index);
  const kinds = Object.entries(mutations);
  const [kind, mutate] = kinds[index % kinds.length] ?? random.pick(kinds);
  const { name, bytes } = random.pick(bases);
  return {
    name: `${index}-${kind}-${name}`,
    family: 'mutated',
    expected: 'either',
    place: (path) => writeFile(path, mutate(bytes, random)),
  };
}

function wholeFile({ name, bytes, isGood }: BaseFile): HostileFile {
  return {
    name,
    family: 'whole',
    expected: isGood ? 'completed' : 'either',
    place: (path) => writeFile(path, bytes),
  };
}
