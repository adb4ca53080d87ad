/** Downloads that are cut at random bytes, of the head or of the body, once or twice, by sources that can continue and some that cannot. */
import { type Exchange, head, type Play, type SourceRequest } from './crooked-source.ts';

export interface CutDownload {
  readonly name: string;
  /** By what the source lets itself be continued. */
  readonly validator: 'etag' | 'date' | 'none';
  /** Where each try is cut, as a part of all that it was to send; what follows comes whole. */
  readonly cutsAt: readonly number[];
  /** Whether the cut is a reset, which also takes away what was not read yet. */
  readonly reset: boolean;
}

/** What was received and not yet read when the end of the connection is noticed: buffers of the socket and of the client. */
const IN_FLIGHT_BYTES = 256 * 1024;

export function drawCuts(count: number, random: () => number): CutDownload[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `cut-${index}`,
    validator: (['etag', 'date', 'none'] as const)[index % 3] ?? 'none',
    cutsAt: Array.from({ length: 1 + Math.floor(random() * 2) }, random),
    reset: random() < 0.3,
  }));
}

const validators = {
  etag: [['ETag', '"one"']],
  date: [
    ['Last-Modified', 'Mon, 06 Jul 2026 08:00:00 GMT'],
    ['Date', 'Mon, 06 Jul 2026 09:00:00 GMT'],
  ],
  none: [],
} as const;

/** @param sent gets how many bytes of the body each try has sent */
export function cutDownload(cut: CutDownload, content: Buffer, sent: number[]): Play {
  return async (exchange) => {
    const answer = answerTo(exchange, cut, content);
    const whole = Buffer.concat([Buffer.from(answer.head), answer.body]);
    const part = cut.cutsAt[exchange.nth - 1];
    const length = part === undefined ? whole.length : Math.floor(part * whole.length);
    sent.push(Math.max(0, length - answer.head.length));
    await exchange.say(whole.subarray(0, length));
    if (part !== undefined && cut.reset) exchange.socket.resetAndDestroy();
    else exchange.cut();
  };
}

function answerTo({ range, start }: Exchange, { validator }: CutDownload, content: Buffer) {
  const body = content.subarray(start);
  const length = ['Content-Length', body.length] as const;
  const place = ['Content-Range', `bytes ${start}-${content.length - 1}/${content.length}`] as const;
  return range === undefined
    ? { head: head('200 OK', [length, ...validators[validator]]), body }
    : { head: head('206 Partial Content', [length, place, ...validators[validator]]), body };
}

/** What is wrong with how a source was asked after each cut, sentences. */
export function cutFaults(
  { validator, cutsAt, reset }: CutDownload,
  requests: readonly SourceRequest[],
  sent: readonly number[],
): string[] {
  const faults: string[] = [];
  if (requests.length !== cutsAt.length + 1) {
    faults.push(`was asked ${requests.length} times after ${cutsAt.length} cuts`);
  }
  let received = 0;
  for (const [index, { start }] of requests.entries()) {
    if (validator === 'none' && start > 0) faults.push(`was asked from byte ${start} without a validator`);
    const mayBeLost = reset ? received : Math.min(received, IN_FLIGHT_BYTES);
    if (start > received || (validator !== 'none' && start < received - mayBeLost)) {
      faults.push(`try ${index + 1} asked from byte ${start}, and ${received} had been sent`);
    }
    received = start + (sent[index] ?? 0);
  }
  return faults;
}
