/** What a source can do wrong, a row each, with the end that its job must have (decisions A7). */
import { setTimeout as delay } from 'node:timers/promises';
import { head, type Play } from './crooked-source.ts';
import { isLong } from './runs.ts';
import { brokenOnce, ETAG, endless, first, lengthOf, lengths, whole } from './source-plays.ts';

export interface SourceRow {
  readonly what: string;
  readonly play: (content: Buffer) => Play;
  /** `whole`: the same result as that of the file itself; else what the job says: `<code>: <details>`. */
  readonly end: 'whole' | RegExp;
  /** How often it is asked; undefined where that is left to the connection. */
  readonly requests?: number;
  /** How many of the tries use up the whole patience. */
  readonly patient?: number;
  /** What the source asked to be left alone for before the second request, ms. */
  readonly restMs?: number;
}

const always = Number.POSITIVE_INFINITY;
const failed = (details: string) => new RegExp(`^DOWNLOAD_FAILED: ${details}$`);
const broken = failed('the connection broke before the end');
const silent = failed('the server took too long to answer');
/** Whichever limit is noticed first. */
const silentInBody = failed('the server (took too long to answer|sends too slowly)');
const notHttp = failed('the server did not answer in valid HTTP');
const tooLarge = failed('the file is larger than allowed');

/** Rows that take long whatever the patience. */
const patientRows: readonly SourceRow[] = [
  {
    what: 'asks to be left alone for an hour, which is obeyed for half a minute each time',
    play: first(always, '429 Slow Down', () => [['Retry-After', '3600']]),
    end: failed('HTTP 429'),
    requests: 3,
    restMs: 30_000,
  },
];

export const sourceRows: readonly SourceRow[] = [
  ...(isLong ? patientRows : []),
  {
    what: 'sends 1 KiB a second',
    play:
      (content) =>
      async ({ say }) => {
        await say(head('200 OK', [lengthOf(content)]));
        for (let at = 0; await say(content.subarray(at, at + 102)); at += 102) await delay(100);
      },
    end: failed('the server sends too slowly'),
    requests: 3,
    patient: 3,
  },
  { what: 'answers 503 twice, then the file', play: first(2, '503 Busy'), end: 'whole', requests: 3 },
  {
    what: 'answers 500 always',
    play: first(always, '500 Broken'),
    end: failed('HTTP 500'),
    requests: 3,
  },
  {
    what: 'answers 404',
    play: first(always, '404 Not Found'),
    end: failed('HTTP 404'),
    requests: 1,
  },
  {
    what: 'answers 403',
    play: first(always, '403 Forbidden'),
    end: failed('HTTP 403'),
    requests: 1,
  },
  {
    what: 'answers 429 with Retry-After in seconds, then the file',
    play: first(1, '429 Slow Down', () => [['Retry-After', '3']]),
    end: 'whole',
    requests: 2,
    restMs: 3_000,
  },
  {
    what: 'answers 429 with Retry-After as a date, then the file',
    play: first(1, '429 Slow Down', () => [['Retry-After', new Date(Date.now() + 4_000).toUTCString()]]),
    end: 'whole',
    requests: 2,
    // A date has whole seconds.
    restMs: 3_000,
  },
  {
    what: 'promises more bytes than it sends, and hangs up',
    play: (content) => lengths(String(content.length + 1_000))(content),
    end: broken,
    requests: 3,
  },
  {
    what: 'promises more bytes than it sends, and stays on the line',
    play: (content) => async (exchange) => {
      await exchange.say(head('200 OK', [['Content-Length', content.length + 1_000]]));
      await exchange.say(content);
    },
    end: silentInBody,
    requests: 3,
    patient: 3,
  },
  {
    // What is beyond the length is no part of the answer (RFC 9112 §6.3), so this is a file that was cut off; where it
    // comes before the rest was read, the connection is closed for it.
    what: 'promises fewer bytes than it sends',
    play: (content) => lengths(String(content.length / 4))(content),
    end: /^(INVALID_VIDEO|DOWNLOAD_FAILED: the connection broke before the end)/,
  },
  { what: 'promises -1 bytes', play: lengths('-1'), end: notHttp },
  { what: 'promises two lengths', play: lengths('10', '20'), end: broken },
  { what: 'promises a length that is no number', play: lengths('many'), end: notHttp },
  { what: 'promises more bytes than a number holds', play: lengths('99999999999999999999999'), end: broken },
  { what: 'promises more bytes than are allowed', play: lengths('99999999999'), end: tooLarge, requests: 1 },
  { what: 'never ends, without a length', play: endless(), end: tooLarge, requests: 1 },
  {
    what: 'never ends, with a length',
    play: endless(['Content-Length', '9007199254740991']),
    end: tooLarge,
    requests: 1,
  },
  {
    what: 'never ends, in chunks',
    play: () => async (exchange) => {
      await exchange.say(head('200 OK', [['Transfer-Encoding', 'chunked']]));
      const chunk = Buffer.concat([
        Buffer.from('10000\r\n'),
        Buffer.alloc(0x10000, 'x'),
        Buffer.from('\r\n'),
      ]);
      while (await exchange.say(chunk));
    },
    end: tooLarge,
    requests: 1,
  },
  { what: 'says nothing', play: () => () => undefined, end: silent, requests: 3, patient: 3 },
  {
    what: 'sends its head byte by byte and never comes to the end',
    play: () => async (exchange) => {
      await exchange.say('HTTP/1.1 200 OK\r\nX-Slow: ');
      while (await exchange.say('x')) await delay(100);
    },
    end: silent,
    requests: 3,
    patient: 3,
  },
  {
    what: 'sends its head byte by byte, then the file',
    play: (content) => async (exchange) => {
      exchange.socket.setNoDelay();
      for (const byte of head('200 OK', [lengthOf(content)])) await exchange.say(byte);
      await exchange.say(content);
      exchange.cut();
    },
    end: 'whole',
    requests: 1,
  },
  {
    what: 'hangs up at once',
    play: () => (exchange) => exchange.cut(),
    end: broken,
    requests: 3,
  },
  {
    what: 'resets the connection at once',
    play: () => (exchange) => exchange.socket.resetAndDestroy(),
    end: broken,
    requests: 3,
  },
  {
    what: 'breaks off, and has another file with another ETag then',
    play: (content) => async (exchange) => {
      if (exchange.nth > 1) return whole(exchange, content, ['ETag', '"two"']);
      const other = Buffer.alloc(content.length, 'x');
      return brokenOnce(other, () => undefined)(exchange);
    },
    end: 'whole',
    requests: 2,
  },
  {
    what: 'breaks off, and continues with another file, disregarding If-Range',
    play: (content) => {
      const other = Buffer.from(content.toReversed());
      return brokenOnce(content, async (exchange) => {
        if (exchange.start === 0) return whole(exchange, content, ['ETag', '"two"']);
        // From where it was asked for: what had come and was not read yet when the cut was noticed is asked for again.
        const { start } = exchange;
        const range = `bytes ${start}-${content.length - 1}/${content.length}`;
        await exchange.say(
          head('206 Partial Content', [
            ['Content-Range', range],
            ['ETag', '"two"'],
          ]),
        );
        await exchange.say(other.subarray(start));
        exchange.cut();
      });
    },
    end: 'whole',
    requests: 3,
  },
  {
    what: 'breaks off, and continues at another place',
    play: (content) =>
      brokenOnce(content, async (exchange) => {
        if (exchange.start === 0) return whole(exchange, content);
        const range = `bytes 7-${content.length - 1}/${content.length}`;
        await exchange.say(head('206 Partial Content', [['Content-Range', range], ETAG]));
        await exchange.say(content.subarray(7));
        exchange.cut();
      }),
    end: 'whole',
    requests: 3,
  },
  {
    what: 'breaks off, and refuses the range',
    play: (content) =>
      brokenOnce(content, async (exchange) => {
        if (exchange.start === 0) return whole(exchange, content);
        await exchange.say(head('416 Range Not Satisfiable'));
        exchange.cut();
      }),
    end: 'whole',
    requests: 3,
  },
  {
    what: 'breaks off each time',
    play: (content) => async (exchange) => brokenOnce(content, () => undefined)({ ...exchange, nth: 1 }),
    end: broken,
    requests: 3,
  },
];
