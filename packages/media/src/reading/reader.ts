/**
 * Reads what strangers describe: small things here, the rest in a process of its own, with limits
 * of time and memory. A playlist of some megabytes would stop all other keys here.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deserialize } from 'node:v8';
import { deadline, untilAborted } from 'soundpost-base/deadline';
import { MediaFailure } from '../failure.ts';
import type { ByteSource } from '../sparse/mp4/top-level.ts';
import { TOOL_ENVIRONMENT } from '../tool-process.ts';
import { IN_PLACE_BYTES, NotInPlace, type Reading } from './in-place.ts';
import {
  errorOf,
  type Kind,
  type Order,
  REPLY_HEAD_BYTES,
  type Reply,
  type SourceState,
  type Want,
} from './messages.ts';
import { tasks } from './tasks.ts';

type Input<Of extends Kind> = Parameters<(typeof tasks)[Of]>[0];
type Output<Of extends Kind> = Awaited<ReturnType<(typeof tasks)[Of]>>;

/**
 * @param sizeBytes of the input: decides where to read it
 * @throws what the task throws; {MediaFailure} INVALID_VIDEO beyond a limit; the signal's reason
 */
export async function readApart<Of extends Kind>(
  kind: Of,
  input: Input<Of>,
  sizeBytes: number,
  reading: Reading,
): Promise<Output<Of>> {
  const task = tasks[kind] as (input: Input<Of>) => Promise<Output<Of>>;
  return sizeBytes <= IN_PLACE_BYTES ? task(input) : shared.run(kind, input, reading);
}

/**
 * As {@link readApart}, of a source that is read here. Tried in place first; what it reads goes to
 * the other process once that is much.
 */
export async function readSourceApart<Of extends SourceKind>(
  kind: Of,
  source: ByteSource,
  reading: Reading,
): Promise<Output<Of>> {
  try {
    return (await tasks[kind](undefined, inPlace(source))) as Output<Of>;
  } catch (error) {
    if (!(error instanceof NotInPlace)) throw error;
  }
  return shared.run(kind, undefined, reading, source);
}

/** As {@link readApart}, of a file on the disk, of which most is passed over. */
export async function readFileApart<Of extends FileKind>(
  kind: Of,
  file: Input<Of>,
  reading: Reading,
): Promise<Output<Of>> {
  try {
    return (await tasks[kind](file, IN_PLACE_BYTES)) as Output<Of>;
  } catch (error) {
    if (!(error instanceof NotInPlace)) throw error;
  }
  return shared.run(kind, file, reading);
}

type SourceKind = 'movieParts' | 'matroskaParts';
type FileKind = 'missingEnd' | 'encryptedStreams' | 'plainFile';

function inPlace(source: ByteSource): ByteSource {
  let leftBytes = IN_PLACE_BYTES;
  const take = (bytes: number): void => {
    leftBytes -= bytes;
    if (leftBytes < 0) throw new NotInPlace();
  };
  return {
    sizeBytes: source.sizeBytes,
    get roundTripBytes() {
      return source.roundTripBytes;
    },
    get rangeBytes() {
      return source.rangeBytes;
    },
    async read(start, end) {
      take(end - start);
      return source.read(start, end);
    },
    async readEach(spans) {
      take(spans.reduce((sum, { start, end }) => sum + end - start, 0));
      return source.readEach(spans);
    },
  };
}

function stateOf({ sizeBytes, roundTripBytes, rangeBytes }: ByteSource): SourceState {
  return { sizeBytes, roundTripBytes, rangeBytes };
}

const MIB = 1024 * 1024;

interface ReaderLimits {
  /** On processors, of one piece of work. */
  readonly processorSeconds: number;
  /** Of the process, resident. */
  readonly memoryBytes: number;
}

/** A playlist of 8 MiB takes a second. */
const LIMITS: ReaderLimits = { processorSeconds: 5, memoryBytes: 256 * MIB };

/** For an answer, on a machine on which many others run. */
const WALL_LIMIT_MS = 60_000;

/** Above it the process is not kept for the next piece of work: Node gives little back. */
const KEPT_MEMORY_BYTES = 128 * MIB;

/** Of V8's part; the rest is counted from outside. */
const HEAP_MIB = 192;

/** The process, started for the first task, and again after it has died. */
export class Reader {
  readonly #limits: ReaderLimits;
  #process: ReaderProcess | undefined;
  #lastId = 0;
  #running = 0;

  constructor(limits: ReaderLimits = LIMITS) {
    this.#limits = limits;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get isBusy(): boolean {
    return this.#running > 0;
  }

  /** @param source whose bytes are asked for. Throws as {@link readApart} */
  async run<Of extends Kind>(
    kind: Of,
    input: Input<Of>,
    reading: Reading,
    source?: ByteSource,
  ): Promise<Output<Of>> {
    this.#running += 1;
    try {
      return await this.#runOn(this.#current(), { kind, input }, reading, source);
    } catch (error) {
      // Another piece of work was too much for it, or somebody ended it.
      if (!(error instanceof ReaderDied)) throw error;
      return await this.#runOn(this.#current(), { kind, input }, reading, source);
    } finally {
      this.#running -= 1;
      if (this.#running === 0) void this.#process?.endIfLarge();
    }
  }

  /** Ends the process. */
  close(): void {
    this.#process?.end();
  }

  #current(): ReaderProcess {
    this.#process ??= new ReaderProcess(this.#limits, (gone) => {
      if (this.#process === gone) this.#process = undefined;
    });
    return this.#process;
  }

  async #runOn<Of extends Kind>(
    on: ReaderProcess,
    work: { readonly kind: Of; readonly input: Input<Of> },
    { signal, charge }: Reading,
    source: ByteSource | undefined,
  ): Promise<Output<Of>> {
    this.#lastId += 1;
    const id = this.#lastId;
    const state = (): Pick<Order, 'source'> => (source === undefined ? {} : { source: stateOf(source) });
    let leftSeconds = this.#limits.processorSeconds;
    const account = (processorSeconds: number): void => {
      leftSeconds -= processorSeconds;
      charge?.(processorSeconds);
    };
    let order: Order = { id, ...work, ...state() };
    let isOver = false;
    try {
      for (;;) {
        const reply: Reply = await untilAborted(on.take(order, leftSeconds, account, signal), signal);
        isOver = !('wants' in reply);
        if ('ended' in reply) return reply.ended as Output<Of>;
        if ('failed' in reply) throw errorOf(reply.failed);
        const read: unknown = await untilAborted(wanted(source, reply.wants), signal);
        order = { id, read, ...state() };
      }
    } finally {
      if (!isOver) on.take({ id, forget: true }, leftSeconds, () => {}).catch(() => {});
    }
  }
}

async function wanted(source: ByteSource | undefined, want: Want): Promise<unknown> {
  return want.from === 'read' ? source?.read(want.start, want.end) : source?.readEach(want.spans);
}

/**
 * A process for each owner that has work: the system shares the cores. One is kept for the next.
 */
export class Readers {
  readonly #byOwner = new Map<string, Reader>();

  pidOf(owner: string): number | undefined {
    return this.#byOwner.get(owner)?.pid;
  }

  /** As {@link Reader.run} */
  async run<Of extends Kind>(
    kind: Of,
    input: Input<Of>,
    reading: Reading,
    source?: ByteSource,
  ): Promise<Output<Of>> {
    const { owner = '' } = reading;
    const reader = this.#byOwner.get(owner) ?? this.#takeIdle() ?? new Reader();
    this.#byOwner.set(owner, reader);
    try {
      return await reader.run(kind, input, reading, source);
    } finally {
      if (!reader.isBusy && this.#byOwner.size > 1) {
        this.#byOwner.delete(owner);
        reader.close();
      }
    }
  }

  /** Ends all processes. */
  close(): void {
    for (const reader of this.#byOwner.values()) reader.close();
  }

  #takeIdle(): Reader | undefined {
    for (const [owner, reader] of this.#byOwner) {
      if (reader.isBusy) continue;
      this.#byOwner.delete(owner);
      return reader;
    }
    return undefined;
  }
}

const shared = new Readers();

/** Says nothing of the work that notices it. */
class ReaderDied extends Error {
  override readonly name = 'ReaderDied';
}

function beyond(what: string): MediaFailure {
  return new MediaFailure(
    'INVALID_VIDEO',
    `the description of the file or stream needs too much ${what} to read; convert the file first`,
  );
}

/** TypeScript in a checkout, JavaScript in the package, like this file. */
const PROGRAM = `./reader-process${extname(import.meta.filename)}`;

/** How often a look is taken at what it uses. */
const LOOK_EVERY_MS = 50;

class ReaderProcess {
  readonly #child: ChildProcess;
  readonly #memoryBytes: number;
  readonly #onGone: (gone: ReaderProcess) => void;
  /** One order at a time: so its time is known. */
  #turn: Promise<unknown> = Promise.resolve();
  #reply: PromiseWithResolvers<Reply> | undefined;
  #received: Buffer[] = [];
  #receivedBytes = 0;
  #isGone = false;

  constructor({ memoryBytes }: ReaderLimits, onGone: (gone: ReaderProcess) => void) {
    this.#memoryBytes = memoryBytes;
    this.#onGone = onGone;
    this.#child = fork(fileURLToPath(new URL(PROGRAM, import.meta.url)), [], {
      execArgv: [`--max-old-space-size=${HEAP_MIB}`],
      env: TOOL_ENVIRONMENT,
      serialization: 'advanced',
      // A terminal's signals should reach only this process.
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
    });
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#receive(chunk));
    this.#child.once('error', () => this.end());
    // V8 aborts where its own part of the memory is used up.
    this.#child.once('exit', (code, signal) =>
      this.end(code === 134 || signal === 'SIGABRT' ? beyond('memory') : undefined),
    );
    // Does not keep an idle process alive; an order has a timer.
    this.#child.unref();
    this.#child.channel?.unref();
    (this.#child.stdout as { unref?(): void } | null)?.unref?.();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /**
   * @param leftSeconds on processors
   * @param account gets the processor time that it took, seconds
   * @throws {MediaFailure} when it takes too much; {ReaderDied}
   */
  take(
    order: Order,
    leftSeconds: number,
    account: (processorSeconds: number) => void,
    signal?: AbortSignal,
  ): Promise<Reply> {
    const reply = this.#turn.then(() => {
      signal?.throwIfAborted();
      return this.#exchange(order, leftSeconds, account);
    });
    this.#turn = reply.catch(() => {});
    return reply;
  }

  /** @param reason why the order that it works at fails; default {@link ReaderDied} */
  end(reason: Error = new ReaderDied()): void {
    this.#isGone = true;
    this.#onGone(this);
    this.#child.kill('SIGKILL');
    this.#reply?.reject(reason);
  }

  /** Puts a reply together once it is whole; the next one comes with the next order. */
  #receive(chunk: Buffer): void {
    this.#received.push(chunk);
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes < REPLY_HEAD_BYTES) return;
    const [first = chunk] = this.#received;
    const head = first.length < REPLY_HEAD_BYTES ? Buffer.concat(this.#received) : first;
    if (this.#receivedBytes < REPLY_HEAD_BYTES + head.readUInt32BE(0)) return;
    const whole = Buffer.concat(this.#received);
    this.#received = [];
    this.#receivedBytes = 0;
    this.#reply?.resolve(deserialize(whole.subarray(REPLY_HEAD_BYTES)) as Reply);
  }

  async endIfLarge(): Promise<void> {
    if ((await this.#used()).memoryBytes > KEPT_MEMORY_BYTES && this.#reply === undefined) this.end();
  }

  async #exchange(
    order: Order,
    leftSeconds: number,
    account: (processorSeconds: number) => void,
  ): Promise<Reply> {
    if (this.#isGone) throw new ReaderDied();
    const reply = Promise.withResolvers<Reply>();
    this.#reply = reply;
    let before: number | undefined;
    let usedSeconds = 0;
    const look = setInterval(async () => {
      const { memoryBytes, processorSeconds } = await this.#used();
      if (this.#reply !== reply) return;
      before ??= processorSeconds;
      usedSeconds = processorSeconds - before;
      if (memoryBytes > this.#memoryBytes) this.end(beyond('memory'));
      else if (usedSeconds > leftSeconds) this.end(beyond('time'));
    }, LOOK_EVERY_MS);
    using limit = deadline(WALL_LIMIT_MS);
    limit.signal.addEventListener('abort', () => this.end(beyond('time')));
    try {
      this.#child.send(order, (error) => error && this.end());
      const answer = await reply.promise;
      account(answer.processorSeconds);
      return answer;
    } catch (error) {
      account(usedSeconds);
      throw error;
    } finally {
      clearInterval(look);
      this.#reply = undefined;
    }
  }

  /** Total processor time, and resident memory (proc(5)); 0 if the system does not report it. */
  async #used(): Promise<{ processorSeconds: number; memoryBytes: number }> {
    const read = (name: string): Promise<string> =>
      readFile(`/proc/${this.pid}/${name}`, 'latin1').catch(() => '');
    const [status, stat] = await Promise.all([read('status'), read('stat')]);
    // Behind the name, which may hold anything: the 14th and 15th fields, in hundredths.
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number);
    const kibibytes = Number(/^VmRSS:\s*(\d+) kB/m.exec(status)?.[1] ?? 0);
    return { processorSeconds: (user + system) / 100, memoryBytes: kibibytes * 1024 };
  }
}
