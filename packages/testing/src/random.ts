/**
 * Numbers that look random and are the same in every run, so that a file that fails can be made
 * again by its name.
 */
export interface Random {
  /** 0 … 1, without 1. */
  next(): number;
  /** A whole number from 0, less than the bound. */
  below(bound: number): number;
  pick<Item>(items: readonly Item[]): Item;
}

/** Mulberry32, by Tommy Ettinger. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    next,
    below,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('there is nothing to pick from');
      return item;
    },
  };
}
