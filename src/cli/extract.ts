/** `extract`: one video in, its audio out; alone on this machine, or by a service. */
import { resolve } from 'node:path';
import { type Config, loadConfig, terminalKind } from '../config.ts';
import type { InputFile, OutputFile } from '../contract/job.ts';
import { UsageError } from './ending.ts';
import { type ExtractChoices, type ExtractRequest, extractRequest } from './extract-options.ts';
import { interruptible } from './interrupt.ts';
import { type Progress, progressOn, type Report, reportOf } from './progress.ts';
import { namedServer, type Server } from './server.ts';
import { chooseTarget, deliver, type Target } from './target.ts';
import { printable } from './terminal-text.ts';
import { spool, tooLarge, type VideoSource, videoSource } from './video-source.ts';

/** What `--json` prints. */
interface ExtractAnswer {
  /** Where the audio is; null: on standard output, or nowhere. */
  readonly file: string | null;
  /** Only by a service. */
  readonly jobId?: string;
  readonly inputFile: InputFile;
  /** Without the service's address of it, which is a secret. */
  readonly outputFile: Omit<OutputFile, 'url' | 'expiresAt'>;
  readonly voiceMessage?: unknown;
}

interface Work {
  readonly source: VideoSource;
  readonly request: ExtractRequest;
  readonly target: Target;
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

export async function extract(
  video: string,
  choices: ExtractChoices,
  say: (line: string) => void,
): Promise<void> {
  const request = extractRequest(choices);
  const config = loadConfig();
  const source = await videoSource(video);
  const server = namedServer(choices, config);
  const fallback = choices.send !== undefined ? 'nowhere' : source.kind === 'stream' ? '-' : '.';
  const target = await chooseTarget(choices, fallback);
  const progress = progressOn(process.stderr, { quiet: choices.quiet === true, terminalKind });
  const answer = await interruptible(async (signal) => {
    const work = { source, request, target, signal, progress };
    try {
      return await (server === undefined ? extractLocally(work, config) : extractByServer(work, server));
    } finally {
      progress.end();
    }
  });
  progress.note(summary(answer, request));
  if (choices.json) say(JSON.stringify(answer));
}

async function extractLocally(
  { source, request, target, signal, progress }: Work,
  config: Config,
): Promise<ExtractAnswer> {
  const { voiceMessage } = request.options;
  if (request.options.webhook !== undefined) {
    throw new UsageError('--webhook: only a service calls webhooks; name one by --server');
  }
  const { gatewayOf, sendToGateway } = await import('./send-to-gateway.ts');
  const gateway = voiceMessage === undefined ? undefined : await gatewayOf(config);
  const { openLocalExtraction } = await import('./local-extraction.ts');
  const local = await openLocalExtraction(config);
  try {
    if (!local.isConfined) {
      progress.note('ffmpeg is not confined on this machine: install bubblewrap to read files of strangers');
    }
    const input = await localInput(source, local.folder, config.MAX_INPUT_BYTES, signal, progress);
    const { outputPath, voicePath, ...result } = await local.run(
      { source: input, ...request },
      signal,
      (state) => progress.show(localReport(source, reportOf(state))),
    );
    const { storageKey: _, expiresAt: __, ...outputFile } = result.outputFile;
    const file = await deliver(target, outputPath, outputFile.filename, signal);
    if (gateway === undefined || voiceMessage === undefined) {
      return { file, inputFile: result.inputFile, outputFile };
    }
    progress.show({ step: 'sending' });
    const sent = await sendToGateway(gateway, voiceMessage, voicePath ?? outputPath, signal);
    return { file, inputFile: result.inputFile, outputFile, voiceMessage: sent };
  } finally {
    await local.close();
  }
}

/** Nothing is downloaded of what is here already. */
function localReport({ kind }: VideoSource, report: Report): Report {
  return kind !== 'url' && report.step === 'downloading' ? { ...report, step: 'reading' } : report;
}

async function localInput(
  source: VideoSource,
  folder: string,
  maxBytes: number,
  signal: AbortSignal,
  progress: Progress,
): Promise<{ url: string } | { path: string; name: string }> {
  if (source.kind === 'url') return { url: source.url };
  if (source.kind === 'file') {
    if (source.sizeBytes > maxBytes) throw tooLarge(maxBytes);
    return source;
  }
  progress.show({ step: 'reading' });
  return spool(source, folder, maxBytes, signal);
}

async function extractByServer(
  { source, request, target, signal, progress }: Work,
  server: Server,
): Promise<ExtractAnswer> {
  const { awaitVoiceMessage, download, extractOnServer } = await import('./extract-on-server.ts');
  const {
    jobId,
    inputFile,
    outputFile: made,
  } = await extractOnServer(server, source, request, signal, progress);
  if (inputFile === null) throw new Error('the service says nothing of the video');
  const { url: _, expiresAt: __, ...outputFile } = made;
  progress.show({ step: 'saving' });
  const file =
    target.kind === 'nowhere'
      ? null
      : await deliver(
          target,
          await download(server, jobId, outputFile.sha256, signal),
          outputFile.filename,
          signal,
        );
  const answer = { file, jobId, inputFile, outputFile };
  if (request.options.voiceMessage === undefined) return answer;
  progress.show({ step: 'sending' });
  const voiceMessage = await awaitVoiceMessage(server, jobId, signal);
  if (voiceMessage?.status !== 'sent') {
    const why = voiceMessage?.error?.message ?? voiceMessage?.status ?? 'nobody knows why';
    throw new Error(`${file === null ? '' : `${file} is there, but `}the voice message was not sent: ${why}`);
  }
  return { ...answer, voiceMessage };
}

function summary({ file, outputFile }: ExtractAnswer, { options }: ExtractRequest): string {
  const { format, duration, bitrate, size, copied, loudness } = outputFile;
  const where = printable(file === null ? outputFile.filename : relativeTo(file));
  const sent = options.voiceMessage === undefined ? '' : `, sent to ${options.voiceMessage.number}`;
  const level = loudness === undefined ? '' : `, ${loudness.outputLufs} LUFS`;
  return `${where}: ${format}, ${duration.toFixed(2)} s, ${bitrate}${copied ? ' (copied)' : ''}, ${kibibytes(size)}${level}${sent}`;
}

function relativeTo(path: string): string {
  const here = `${resolve('.')}/`;
  return path.startsWith(here) ? path.slice(here.length) : path;
}

function kibibytes(bytes: number): string {
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
