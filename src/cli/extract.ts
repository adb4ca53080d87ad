/** `extract`: extracts a video's audio, on this machine or by a service. */
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { formatOf } from 'soundpost-contract/formats';
import type { AnyOutputFile, InputFile, OutputFile } from 'soundpost-contract/job';
import { isProbe, outputsOf } from 'soundpost-contract/output-request';
import { filesOf } from '../jobs/payloads.ts';
import { type Config, loadConfig, terminalKind } from '../process/config.ts';
import { UsageError } from './ending.ts';
import { extractRequest } from './extract-options.ts';
import { interruptible } from './interrupt.ts';
import type { openLocalExtraction } from './local-extraction.ts';
import { type ProbeAnswer, probeText } from './probe-answer.ts';
import { type Progress, progressOn, reportOf } from './progress.ts';
import { namedServer, type Server } from './server.ts';
import type { Streams } from './streams.ts';
import { chooseTarget, deliver, targetBeside } from './target.ts';
import { printable } from './terminal-text.ts';
import { awaitTranscript, demandTranscriber, isTranscript, transcribeHere } from './transcript.ts';
import { spool, tooLarge, videoSource } from './video-source.ts';

type VideoSource = Awaited<ReturnType<typeof videoSource>>;

type LocalExtraction = Awaited<ReturnType<typeof openLocalExtraction>>;

type Target = Awaited<ReturnType<typeof targetBeside>>;

type ExtractChoices = Parameters<typeof extractRequest>[0];

type ExtractRequest = ReturnType<typeof extractRequest>;

type Shown<File> = File extends AnyOutputFile ? Omit<File, 'url' | 'expiresAt'> : never;

/** The output of `--json`. */
interface ExtractAnswer {
  /** Path of the audio; null: standard output, or nowhere. */
  readonly file: string | null;
  /** Only by a service. */
  readonly jobId?: string;
  readonly inputFile: InputFile;
  /** Without the service's address of it, which is a secret. */
  readonly outputFile: Shown<OutputFile>;
  /** With `--also`: all outputs, each with its path. */
  readonly outputFiles?: readonly (Shown<AnyOutputFile> & { readonly file: string | null })[];
  /** With `--transcript`. */
  readonly transcript?: { readonly file: string | null; readonly language: string | null };
  readonly voiceMessage?: unknown;
  /** Only by a service. */
  readonly destination?: unknown;
}

interface Work {
  readonly source: VideoSource;
  readonly request: ExtractRequest;
  /** For each output. */
  readonly targets: readonly Target[];
  /** For the transcript. */
  readonly words: Target | undefined;
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

export async function extract(
  video: string,
  choices: ExtractChoices,
  say: (line: string) => void,
  streams: Streams,
): Promise<void> {
  const request = extractRequest(choices);
  const config = loadConfig();
  const source = await videoSource(video, streams, choices.header);
  const server = namedServer(choices, config);
  const targets = await chooseTargets(choices, request, source, streams);
  const words = await chooseWords(choices, streams);
  const progress = progressOn(streams.stderr, { quiet: choices.quiet === true, terminalKind });
  const answer = await interruptible(async (signal) => {
    const work = { source, request, targets, words, signal, progress };
    try {
      return await (server === undefined ? extractLocally(work, config) : extractByServer(work, server));
    } finally {
      progress.end();
    }
  });
  if ('outputFile' in answer) progress.note(summary(answer, request));
  if (choices.json) say(JSON.stringify(answer));
  else if (!('outputFile' in answer)) say(probeText(answer));
}

async function extractLocally(
  { source, request, targets, words, signal, progress }: Work,
  config: Config,
): Promise<ExtractAnswer | ProbeAnswer> {
  const { voiceMessage } = request.options;
  if (request.destination !== undefined) {
    throw new UsageError('--destination: only a service uploads files; add --server');
  }
  if (request.options.webhook !== undefined) {
    throw new UsageError('--webhook: only a service sends webhooks; add --server');
  }
  if (words !== undefined) demandTranscriber(config);
  const { gatewayOf, sendToGateway } = await import('./send-to-gateway.ts');
  const gateway = voiceMessage === undefined ? undefined : await gatewayOf(config);
  const { openLocalExtraction } = await import('./local-extraction.ts');
  const local = await openLocalExtraction(config);
  try {
    if (!local.isConfined) {
      progress.note(
        'ffmpeg runs without a sandbox on this machine: install bubblewrap before you read files you do not trust',
      );
    }
    const input = await localInput(source, local.folder, config.MAX_INPUT_BYTES, signal, progress);
    const { outputPaths, voicePath, recordings, ...result } = await local.run(
      { source: input, ...request },
      signal,
      (state) => progress.show(localReport(source, reportOf(state))),
    );
    const { inputFile, warnings } = result;
    if (isProbe(request)) return { inputFile, warnings };
    const made = filesOf(result);
    const places = await deliverAll(targets, made, signal, async (_file, nth) => outputPaths[nth] ?? '');
    const recording = recordings[0];
    const answer = {
      ...filesAnswer(
        made.map(({ storageKey: _, ...file }) => file),
        places,
      ),
      inputFile,
      ...(words === undefined || recording === undefined
        ? {}
        : { transcript: await wordsHere(words, recording, local.folder, config, signal, progress) }),
    };
    if (gateway === undefined || voiceMessage === undefined) return answer;
    progress.show({ step: 'sending' });
    const note = voicePath ?? outputPaths[0] ?? '';
    return { ...answer, voiceMessage: await sendToGateway(gateway, voiceMessage, note, signal) };
  } finally {
    await local.close();
  }
}

async function wordsHere(
  words: Target,
  recording: Parameters<typeof transcribeHere>[1],
  folder: string,
  config: Config,
  signal: AbortSignal,
  progress: Progress,
): Promise<ExtractAnswer['transcript']> {
  const { path, language } = await transcribeHere(config, recording, folder, signal, progress);
  return { file: await deliver(words, path, recording.audio.filename, signal), language };
}

/** Shows no download for a local file. */
function localReport(
  { kind }: VideoSource,
  report: ReturnType<typeof reportOf>,
): ReturnType<typeof reportOf> {
  return kind !== 'url' && report.step === 'downloading' ? { ...report, step: 'reading' } : report;
}

async function localInput(
  source: VideoSource,
  folder: string,
  maxBytes: number,
  signal: AbortSignal,
  progress: Progress,
): Promise<Parameters<LocalExtraction['run']>[0]['source']> {
  if (source.kind === 'url') return source;
  if (source.kind === 'file') {
    if (source.sizeBytes > maxBytes) throw tooLarge(maxBytes);
    return source;
  }
  progress.show({ step: 'reading' });
  return spool(source, folder, maxBytes, signal);
}

async function extractByServer(
  { source, request, targets, words, signal, progress }: Work,
  server: Server,
): Promise<ExtractAnswer | ProbeAnswer> {
  const { awaitHandedOn, download, extractOnServer } = await import('./extract-on-server.ts');
  const completed = await extractOnServer(server, source, request, signal, progress);
  const { jobId, inputFile } = completed;
  // It may exist already, but is awaited below.
  const outputFiles = completed.outputFiles.filter((file) => !isTranscript(file));
  if (inputFile === null) throw new Error('the service returned no information about the video');
  if (isProbe(request)) return { jobId, inputFile, warnings: completed.warnings };
  progress.show({ step: 'saving' });
  const places = await deliverAll(targets, outputFiles, signal, (file) =>
    download(server, jobId, file, signal),
  );
  const made = filesAnswer(outputFiles, places);
  const { file } = made;
  const transcript = words && (await wordsFrom(server, jobId, words, signal, progress));
  const answer = { ...made, jobId, inputFile, ...(transcript && { transcript }) };
  const isSent = request.options.voiceMessage !== undefined;
  if (!isSent && request.destination === undefined) return answer;
  progress.show({ step: 'sending' });
  const { voiceMessage, destination, outputFiles: put } = await awaitHandedOn(server, jobId, signal);
  const but = file === null ? '' : `${file} is written, but `;
  if (isSent && voiceMessage?.status !== 'sent') {
    const why = voiceMessage?.error?.message ?? voiceMessage?.status ?? 'no reason given';
    throw new Error(`${but}the voice message was not sent: ${why}`);
  }
  if (destination?.status === 'failed') {
    const lost = put.find((one) => one.destination?.status === 'failed')?.name;
    const named = put.length > 1 && lost !== undefined ? ` --name ${lost}` : '';
    const remedy = `download it with "soundpost jobs download ${jobId}${named}"`;
    throw new Error(
      `${but}the file was not uploaded to its destination: ${destination.error?.message}; ${remedy}`,
    );
  }
  return { ...answer, ...(voiceMessage && { voiceMessage }), ...(destination && { destination }) };
}

async function wordsFrom(
  server: Server,
  jobId: string,
  words: Target,
  signal: AbortSignal,
  progress: Progress,
): Promise<ExtractAnswer['transcript']> {
  const { download } = await import('./extract-on-server.ts');
  progress.show({ step: 'transcribing' });
  const file = await awaitTranscript(server, jobId, signal);
  const content = await download(server, jobId, file, signal);
  return { file: await deliver(words, content, file.filename, signal), language: file.language };
}

async function chooseWords(
  { transcript, force }: ExtractChoices,
  streams: Streams,
): Promise<Target | undefined> {
  return transcript === undefined ? undefined : chooseTarget({ output: transcript, force }, '.', streams);
}

/** Further files go beside the first. */
async function chooseTargets(
  choices: ExtractChoices,
  request: ExtractRequest,
  source: VideoSource,
  streams: Streams,
): Promise<Target[]> {
  if (isProbe(request)) return [];
  const [, ...others] = outputsOf(request).filter(({ format }) => format !== 'transcript');
  // A chat gets only the first file, a destination gets all.
  const isHandedOn = choices.destination !== undefined || (choices.send !== undefined && others.length === 0);
  const fallback = isHandedOn ? 'nowhere' : source.kind === 'stream' && others.length === 0 ? '-' : '.';
  const first = await chooseTarget(choices, fallback, streams);
  const beside = others.map(({ name, format }) => targetBeside(first, name, formatOf(format).extension));
  return [first, ...(await Promise.all(beside))];
}

/** @param contentOf a path, or the bytes; not called for a file that goes nowhere */
async function deliverAll<File extends { readonly filename: string }>(
  targets: readonly Target[],
  files: readonly File[],
  signal: AbortSignal,
  contentOf: (file: File, nth: number) => Promise<string | Readable>,
): Promise<(string | null)[]> {
  const places: (string | null)[] = [];
  for (const [nth, file] of files.entries()) {
    const target = targets[nth];
    const goesNowhere = target === undefined || target.kind === 'nowhere';
    places.push(
      goesNowhere ? null : await deliver(target, await contentOf(file, nth), file.filename, signal),
    );
  }
  return places;
}

function filesAnswer(
  files: readonly AnyOutputFile[],
  places: readonly (string | null)[],
): Pick<ExtractAnswer, 'file' | 'outputFile' | 'outputFiles'> {
  const shown = files.map(({ url: _, expiresAt: __, ...file }) => file);
  const [outputFile] = shown;
  if (outputFile === undefined || outputFile.format === 'waveform' || outputFile.format === 'transcript')
    throw new Error('no audio was made');
  const [file = null] = places;
  return {
    file,
    outputFile,
    ...(shown.length === 1
      ? {}
      : { outputFiles: shown.map((each, nth) => ({ ...each, file: places[nth] ?? null })) }),
  };
}

function summary(
  { file, outputFile, outputFiles = [], transcript }: ExtractAnswer,
  { options }: ExtractRequest,
): string {
  const { format, duration, bitrate, size, copied, loudness } = outputFile;
  const sent = options.voiceMessage === undefined ? '' : `, sent to ${options.voiceMessage.number}`;
  const level = loudness === undefined ? '' : `, ${loudness.outputLufs} LUFS`;
  const first = `${placeOf(file, outputFile)}: ${format}, ${duration.toFixed(2)} s, ${bitrate}${copied ? ' (copied)' : ''}, ${kibibytes(size)}${level}${sent}`;
  const others = outputFiles
    .slice(1)
    .map((other) => `${placeOf(other.file, other)}: ${other.format}, ${kibibytes(other.size)}`);
  const words = transcript?.file ? [`${printable(relativeTo(transcript.file))}: transcript`] : [];
  return [first, ...others, ...words].join('\n');
}

function placeOf(file: string | null, { filename }: { readonly filename: string }): string {
  return printable(file === null ? filename : relativeTo(file));
}

function relativeTo(path: string): string {
  const here = `${resolve('.')}/`;
  return path.startsWith(here) ? path.slice(here.length) : path;
}

function kibibytes(bytes: number): string {
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
