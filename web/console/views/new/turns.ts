/** So many uploads at a time; the others wait for their turn. */
const MOST_AT_ONCE = 3;

type Turn = () => void;

let waiting: readonly Turn[] = [];
const running = new Set<Turn>();

/**
 * @param begin called when it is its turn, perhaps at once
 * @returns gives the turn back, or the place in the queue
 */
export function takeTurn(begin: () => void): () => void {
  const turn: Turn = () => begin();
  waiting = [...waiting, turn];
  next();
  return () => {
    waiting = waiting.filter((one) => one !== turn);
    if (running.delete(turn)) next();
  };
}

function next(): void {
  const [turn, ...others] = waiting;
  if (turn === undefined || running.size >= MOST_AT_ONCE) return;
  waiting = others;
  running.add(turn);
  turn();
  next();
}
