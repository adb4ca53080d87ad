/** What an operation's request is in curl, JavaScript and Python: `x-codeSamples`, made of its own examples, which API references show beside it. */
import { literalOf } from './literals.ts';

export interface SampleRequest {
  readonly method: string;
  /** Of the server, without a slash at the end. */
  readonly baseUrl: string;
  /** With examples in the place of parameters. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: { readonly json: unknown } | { readonly mediaType: string } | undefined;
  readonly answer: 'json' | 'text' | 'bytes' | 'events' | 'nothing';
  /** Where the bytes of an answer go. */
  readonly saveAs: string;
  /** How our own client does it, such as `job('job_5f0c2a9be41d7783')`. */
  readonly call?: string | undefined;
}

export interface CodeSample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

/** Stands for the caller's key. */
export const SAMPLE_KEY = 'YOUR_API_KEY';
/** The file that is sent. */
const VIDEO = 'video.mp4';
/** The file in JavaScript, as a Blob that is not read into memory. */
export const OPENED_VIDEO = `await openAsBlob('${VIDEO}')`;

export function samplesOf(request: SampleRequest): CodeSample[] {
  const javaScript = request.call === undefined ? fetchSample(request) : clientSample(request, request.call);
  return [
    { lang: 'shell', label: 'curl', source: curlSample(request) },
    { lang: 'javascript', label: 'JavaScript', source: javaScript },
    { lang: 'python', label: 'Python', source: pythonSample(request) },
  ];
}

function headersOf({ headers, body }: SampleRequest): [string, string][] {
  if (body === undefined) return Object.entries(headers);
  const type = 'json' in body ? 'application/json' : body.mediaType;
  return [...Object.entries(headers), ['Content-Type', type]];
}

function curlSample(request: SampleRequest): string {
  const { method, baseUrl, path, body, answer, saveAs } = request;
  const isUsual = method === (body === undefined ? 'GET' : 'POST');
  const parts = [
    `curl${answer === 'events' ? ' --no-buffer' : ''}${isUsual ? '' : ` --request ${method}`} ${quoted(baseUrl + path)}`,
    ...headersOf(request).map(([name, value]) => `--header ${quoted(`${name}: ${value}`)}`),
    ...(answer === 'bytes' ? [`--output ${saveAs}`] : []),
  ];
  if (body !== undefined) {
    parts.push(
      'json' in body
        ? `--data ${quoted(JSON.stringify(body.json, undefined, 2))}`
        : `--data-binary @${VIDEO}`,
    );
  }
  return parts.join(' \\\n  ');
}

/** As a shell takes it for one word. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

const OPEN_VIDEO = "import { openAsBlob } from 'node:fs';";
const WRITE_FILE = "import { writeFile } from 'node:fs/promises';";

function clientSample({ baseUrl, body, answer, saveAs }: SampleRequest, call: string): string {
  const isFile = body !== undefined && !('json' in body);
  return lines([
    isFile && OPEN_VIDEO,
    answer === 'bytes' && WRITE_FILE,
    "import { createClient } from 'soundpost-client';",
    '',
    `const soundpost = createClient({ baseUrl: ${js(baseUrl)}, apiKey: ${js(SAMPLE_KEY)} });`,
    ...(answer === 'bytes'
      ? [`const { body } = await soundpost.${call};`, `await writeFile(${js(saveAs)}, body);`]
      : [`const answer = await soundpost.${call};`, 'console.log(answer);']),
  ]);
}

function fetchSample(request: SampleRequest): string {
  const { method, baseUrl, path, body, answer, saveAs } = request;
  const headers = Object.fromEntries(headersOf(request));
  const isFile = body !== undefined && !('json' in body);
  const options = [
    ...(method === 'GET' ? [] : [`  method: ${js(method)},`]),
    ...(Object.keys(headers).length === 0 ? [] : [`  headers: ${js(headers, '  ')},`]),
    ...(isFile ? [`  body: ${OPENED_VIDEO},`] : []),
    ...(body !== undefined && 'json' in body ? [`  body: JSON.stringify(${js(body.json, '  ')}),`] : []),
  ];
  const given = options.length === 0 ? '' : `, {\n${options.join('\n')}\n}`;
  return lines([
    isFile && OPEN_VIDEO,
    answer === 'bytes' && WRITE_FILE,
    (isFile || answer === 'bytes') && '',
    `const response = await fetch(${js(baseUrl + path)}${given});`,
    ...{
      json: ['console.log(await response.json());'],
      text: ['console.log(await response.text());'],
      bytes: [`await writeFile(${js(saveAs)}, response.body);`],
      events: [
        'for await (const text of response.body.pipeThrough(new TextDecoderStream())) {',
        '  console.log(text);',
        '}',
      ],
      nothing: ['console.log(response.status);'],
    }[answer],
  ]);
}

function js(value: unknown, indent = ''): string {
  return literalOf(value, 'javascript', indent);
}

function py(value: unknown, indent = ''): string {
  return literalOf(value, 'python', indent);
}

function pythonSample(request: SampleRequest): string {
  const { method, baseUrl, path, body, answer, saveAs } = request;
  const headers = Object.fromEntries(headersOf(request));
  const isFile = body !== undefined && !('json' in body);
  return lines([
    ((body !== undefined && !isFile) || answer === 'json') && 'import json',
    answer === 'bytes' && 'import shutil',
    isFile && 'from pathlib import Path',
    'from urllib.request import Request, urlopen',
    '',
    'request = Request(',
    `    ${py(baseUrl + path)},`,
    method !== 'GET' && `    method=${py(method)},`,
    Object.keys(headers).length > 0 && `    headers=${py(headers, '    ')},`,
    isFile && `    data=Path(${py(VIDEO)}).read_bytes(),`,
    body !== undefined && 'json' in body && `    data=json.dumps(${py(body.json, '    ')}).encode(),`,
    ')',
    'with urlopen(request) as answer:',
    ...{
      json: ['    print(json.load(answer))'],
      text: ['    print(answer.read().decode())'],
      bytes: [`    with open(${py(saveAs)}, "wb") as file:`, '        shutil.copyfileobj(answer, file)'],
      events: ['    for line in answer:', '        print(line.decode(), end="")'],
      nothing: ['    print(answer.status)'],
    }[answer],
  ]);
}

function lines(parts: readonly (string | false)[]): string {
  return parts.filter((part) => part !== false).join('\n');
}
