import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { answerSchemas } from './answer-schemas.ts';
import { type CodeBlock, codeBlocks } from './markdown.ts';
import { expectSame } from './shape.ts';
import { Walk } from './walk.ts';

const PAGE = 'docs/walk.md';
const blocks = codeBlocks(PAGE);

const LONGEST_REPEAT_MS = 30_000;

const Envelope = z.object({ data: z.record(z.string(), z.unknown()) });

/** The lines that the server prints, with what differs from start to start blanked. */
function masked(line: string): string {
  return line
    .replace(/:\d+/, ':N')
    .replace(/code=\S+/, 'code=…')
    .replace(/sp_\w+/, 'sp_…');
}

describe('the walk with curl', () => {
  let walk: Walk;
  beforeAll(async () => {
    walk = await Walk.begin();
  });
  afterAll(() => walk[Symbol.asyncDispose]());

  it('gives the answers that it shows', async () => {
    for (const block of blocks) {
      const [, follow] = steps.find(([marked]) => marked.test(`${block.mark}\n${block.text}`)) ?? [];
      await follow?.(block);
    }
    expect((await readFile(join(walk.folder, 'here/talk.mp3'))).length).toBeGreaterThan(10_000);
    // A busy machine takes longer than the 30 s of other tests.
  }, 120_000);

  /** What the last block printed. */
  let printed = '';
  let receiver: AsyncIterator<string> | undefined;

  /** What is done with a block, by its mark; the first that fits. */
  const steps: readonly (readonly [RegExp, (block: CodeBlock) => Promise<void>])[] = [
    [/^runs as the service\n/, startService],
    [
      /^runs beside\n/,
      ({ text }) =>
        walk
          .beside(text)
          [Symbol.asyncIterator]()
          .next()
          .then(() => undefined),
    ],
    [/^runs until /, repeat],
    [/^runs\n/, runOnce],
    [/^does not run: .*\n.*webhook-receiver/, startReceiver],
    [/^answer: announcements/, expectAnnouncements],
    [/^answer: /, async (block) => expectSame(PAGE, block, JSON.parse(printed), JSON.parse(block.text))],
    [/^webhook/, expectWebhook],
  ];

  async function runOnce({ text }: CodeBlock): Promise<void> {
    printed = await walk.run(text);
    setVariables(printed);
  }

  async function expectAnnouncements(block: CodeBlock): Promise<void> {
    const { voiceMessage, webhook } = Envelope.parse(JSON.parse(printed)).data;
    expectSame(PAGE, block, { voiceMessage, webhook }, JSON.parse(block.text));
  }

  async function startService(block: CodeBlock): Promise<void> {
    const shown = blocks[blocks.indexOf(block) + 1]?.text.trim().split('\n') ?? [];
    const lines = walk.serve(block.text)[Symbol.asyncIterator]();
    for (const line of shown) {
      const { value } = await lines.next();
      expect(masked(String(value))).toBe(masked(line));
      const [, key] = /^API key {2}(sp_\w+)/.exec(String(value)) ?? [];
      if (key !== undefined) {
        walk.variables.KEY = key;
      }
    }
    walk.variables.API = walk.translated('http://127.0.0.1:8080');
  }

  /** What the reader copies out of an answer into a variable. */
  function setVariables(printed: string): void {
    const [jobId] = /job_[0-9a-f]{16}/.exec(printed) ?? [];
    const [secret] = /whsec_[^"]+/.exec(printed) ?? [];
    if (jobId !== undefined) {
      walk.variables.JOB = jobId;
    }
    if (secret !== undefined) {
      walk.variables.SECRET = secret;
    }
  }

  async function repeat(block: CodeBlock): Promise<void> {
    const ask = async (): Promise<boolean> => {
      printed = await walk.run(block.text);
      const { data } = Envelope.parse(JSON.parse(printed));
      const { status, voiceMessage, webhook } = z
        .object({
          status: z.string(),
          voiceMessage: z.object({ messageStatus: z.string().nullable() }).optional(),
          webhook: z.object({ status: z.string() }).optional(),
        })
        .parse(data);
      const told = voiceMessage?.messageStatus === 'DELIVERY_ACK' && webhook?.status === 'delivered';
      return block.mark === 'runs until told' ? told : status === 'completed';
    };
    // Not for ever: what was timed out would go on asking, and its service with it.
    await until(block.mark, ask, LONGEST_REPEAT_MS).catch((error: Error) => {
      throw new Error(`${error.message}, and the last answer is ${printed}`, { cause: error });
    });
  }

  async function startReceiver({ text }: CodeBlock): Promise<void> {
    const command = text.replace(/SECRET=\S+/, `SECRET=${walk.variables.SECRET}`);
    const lines = walk.beside(command)[Symbol.asyncIterator]();
    expect((await lines.next()).value).toMatch(/^waiting for webhooks/);
    receiver = lines;
  }

  async function expectWebhook(block: CodeBlock): Promise<void> {
    const [first = '', ...shown] = block.text.trim().split('\n');
    const body = await received(`verified ${walk.variables.JOB}-webhook`);
    expect(first).toMatch(/^verified job_[0-9a-f]{16}-webhook$/);
    expect(answerSchemas['job.completed']?.parse(body)).toEqual(body);
    expectSame(PAGE, block, body, JSON.parse(shown.join('\n')));
  }

  /** The body that the receiver printed after this line; what it printed about others is passed over. */
  async function received(verified: string): Promise<unknown> {
    for (;;) {
      const line = await nextLine();
      let json = '';
      do {
        json += await nextLine();
      } while (!json.endsWith('}') || json.endsWith(' }'));
      if (line === verified) {
        return JSON.parse(json);
      }
    }
  }

  async function nextLine(): Promise<string> {
    return String((await receiver?.next())?.value);
  }
});
