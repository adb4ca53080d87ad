/** What a misbehaving source does with a request, in pieces that several rows share. */
import { type Exchange, head, type Play } from './crooked-source.ts';

export const ETAG = ['ETag', '"one"'] as const;
export const lengthOf = (content: Buffer) => ['Content-Length', content.length] as const;

export async function whole(
  { say, cut }: Exchange,
  content: Buffer,
  ...headers: [string, string][]
): Promise<void> {
  await say(head('200 OK', [lengthOf(content), ...headers]));
  await say(content);
  cut();
}

/** Cuts the first answer in its middle; `rest` answers what follows. */
export function brokenOnce(content: Buffer, rest: Play): Play {
  return async (exchange) => {
    if (exchange.nth > 1) return rest(exchange);
    await exchange.say(head('200 OK', [lengthOf(content), ETAG]));
    await exchange.say(content.subarray(0, content.length / 2));
    exchange.cut();
  };
}

/** A status for the first `times` requests, then the file. */
export function first(times: number, status: string, headers: () => [string, string][] = () => []) {
  return (content: Buffer): Play =>
    async (exchange) => {
      if (exchange.nth > times) return whole(exchange, content);
      await exchange.say(head(status, [['Content-Length', '0'], ...headers()]));
      exchange.cut();
    };
}

/** Says the head, then bytes for as long as anybody listens. */
export function endless(...headers: [string, string][]) {
  return (content: Buffer): Play =>
    async ({ say }) => {
      await say(head('200 OK', headers));
      while (await say(content));
    };
}

/** An answer whose head has these Content-Length lines. */
export function lengths(...values: string[]) {
  return (content: Buffer): Play =>
    async ({ say, cut }) => {
      await say(
        head(
          '200 OK',
          values.map((value) => ['Content-Length', value] as const),
        ),
      );
      await say(content);
      cut();
    };
}
