/**
 * A transcriber that hears real words: CMU PocketSphinx behind OpenAI's `POST /v1/audio/transcriptions`, for a vocabulary of a few words. Each word is a
 * segment, so that a test can tell when it was heard.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Asked, sendJson, startTranscriber, type TranscriberStub } from './transcriber-stub.ts';

const run = promisify(execFile);

export async function startSphinx(vocabulary: readonly string[]): Promise<TranscriberStub> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-test-sphinx-'));
  const grammar = join(folder, 'talk.jsgf');
  await writeFile(grammar, `#JSGF V1.0;\ngrammar talk;\npublic <talk> = ( ${vocabulary.join(' | ')} )+;\n`);
  const stub = await startTranscriber();
  let requests = 0;
  stub.answer = (response, asked) => {
    requests += 1;
    const path = join(folder, `${requests}.wav`);
    hear(path, grammar, asked).then(
      (answer) => sendJson(response, 200, answer),
      (error: Error) => sendJson(response, 500, { error: { message: error.message } }),
    );
  };
  const { close } = stub;
  // The stub itself, so that a test may give it other answers.
  stub.close = async () => {
    await close();
    await rm(folder, { recursive: true, force: true });
  };
  return stub;
}

async function hear(path: string, grammar: string, { audio, seconds }: Asked): Promise<object> {
  await writeFile(path, audio);
  const options = ['-infile', path, '-time', 'yes', '-jsgf', grammar, '-logfn', '/dev/null'];
  const { stdout } = await run('pocketsphinx_continuous', options, { maxBuffer: 64 * 1024 * 1024 });
  // `evening 0.190 0.590 1.000000`; others are silences, states of the grammar and whole utterances.
  const segments = [...stdout.matchAll(/^([a-z]+)(?:\(\d\))? (\d+\.\d+) (\d+\.\d+) \d+\.\d+$/gm)].map(
    ([, text = '', start, end], id) => ({ id, start: Number(start), end: Number(end), text: ` ${text}` }),
  );
  return {
    task: 'transcribe',
    language: 'english',
    duration: seconds,
    text: segments.map(({ text }) => text).join(''),
    segments,
  };
}
