/** A request as a command that a reader can run. */
import {
  type Content,
  type DocumentParts,
  keyHeader,
  type Method,
  type Operation,
} from './document-parts.ts';

/** An operation and where it is. */
export interface Listed {
  readonly path: string;
  readonly method: Method;
  readonly operation: Operation;
}

export interface Command {
  readonly title: string;
  readonly text: string;
}

/** One command for each example of the body, or one where there is none. */
export function curlCommands(
  { path, method, operation }: Listed,
  parts: DocumentParts,
  sampleFile: string,
): Command[] {
  const base = parts.servers[0]?.url ?? '';
  const address = `${base}${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `$${shellName(name)}`)}`;
  const options = optionsOf(operation, keyHeader(parts));
  const head = ['curl', ...(method === 'get' ? [] : [`-X ${method.toUpperCase()}`]), ...options.before].join(
    ' ',
  );
  const lines = [`${head} "${address}"`, ...options.headers];
  const bodies = Object.entries(operation.requestBody?.content ?? {}).flatMap(([mediaType, part]) =>
    bodyCommands(mediaType, part, sampleFile),
  );
  return (bodies.length > 0 ? bodies : [{ title: '', lines: [] }]).map((body) => ({
    title: body.title,
    text: [...lines, ...body.lines].join(' \\\n  '),
  }));
}

function optionsOf(
  { security, responses }: Operation,
  header: string,
): { before: string[]; headers: string[] } {
  const media = Object.values(responses).flatMap((response) =>
    'content' in response ? Object.keys(response.content) : [],
  );
  const streams = media.includes('text/event-stream') ? ['-N'] : [];
  const saves = media.some((type) => type.startsWith('audio/')) ? ['-OJ'] : [];
  const keyed = security.some((requirement) => 'apiKey' in requirement);
  return { before: [...streams, ...saves], headers: keyed ? [`-H "${header}: $API_KEY"`] : [] };
}

function bodyCommands(
  mediaType: string,
  { schema, examples }: Content[string],
  sampleFile: string,
): { title: string; lines: string[] }[] {
  if (mediaType === 'multipart/form-data') {
    const [form] = Object.values(examples ?? {});
    const parts = Object.entries(schema?.properties ?? {}).map(([name, part]) =>
      part.format === 'binary'
        ? `-F ${name}=@${sampleFile}`
        : `-F ${quoted(`${name}=${JSON.stringify(partOf(form?.value, name))};type=application/json`)}`,
    );
    return [{ title: form?.summary ?? '', lines: parts }];
  }
  const contentType = `-H "Content-Type: ${mediaType}"`;
  if (schema?.format === 'binary') {
    return [{ title: 'The bytes of a file', lines: [contentType, `--data-binary @${sampleFile}`] }];
  }
  return Object.values(examples ?? {}).map(({ summary = '', value }) => ({
    title: summary,
    lines: [contentType, `-d ${quoted(JSON.stringify(value, undefined, 2))}`],
  }));
}

function partOf(form: unknown, name: string): unknown {
  return typeof form === 'object' && form !== null
    ? Object.entries(form).find(([key]) => key === name)?.[1]
    : undefined;
}

/** As one word of a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** `jobId` as `JOB_ID`. */
function shellName(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}
