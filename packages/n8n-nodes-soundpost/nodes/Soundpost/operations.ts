/** What each operation does with one item. */
import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import { NodeOperationError } from 'n8n-workflow';
import { data, dataOf, ended, type Job, parsed } from './service';

type Operation = (functions: IExecuteFunctions, itemIndex: number) => Promise<INodeExecutionData[]>;

const PAGE = 100;

const text = (functions: IExecuteFunctions, name: string, itemIndex: number): string =>
  String(functions.getNodeParameter(name, itemIndex, '')).trim();

const jobPath = (functions: IExecuteFunctions, itemIndex: number): string =>
  `/v1/jobs/${encodeURIComponent(text(functions, 'jobId', itemIndex))}`;

/** By `resource.operation`. */
export const operations: Readonly<Record<string, Operation>> = {
  'job.extract': async (functions, itemIndex) => {
    const { bitrate, channels, normalize, destination, ...rest } = asked(functions, itemIndex);
    const format = text(functions, 'format', itemIndex);
    const output = without({ format, bitrate, channels, normalize: normalize || undefined, ...cut(rest) });
    const request = { output, ...(destination ? { destination: { url: destination } } : {}) };
    return submitted(functions, itemIndex, request);
  },
  'job.transcribe': async (functions, itemIndex) => {
    const { language, ...rest } = asked(functions, itemIndex);
    const subtitles = text(functions, 'subtitles', itemIndex);
    // A transcript is never the first output. Of the others this one is the smallest.
    const audio = { name: 'audio', format: 'voice', ...cut(rest) };
    const words = without({ name: 'words', format: 'transcript', subtitles, language, ...cut(rest) });
    return submitted(functions, itemIndex, { outputs: [audio, words] }, 'words');
  },
  'job.probe': (functions, itemIndex) => submitted(functions, itemIndex, { output: { format: 'probe' } }),
  'job.get': async (functions, itemIndex) => [
    { json: await data<Job>(functions, { method: 'GET', url: jobPath(functions, itemIndex) }, itemIndex) },
  ],
  'job.cancel': async (functions, itemIndex) => [
    { json: await data<Job>(functions, { method: 'DELETE', url: jobPath(functions, itemIndex) }, itemIndex) },
  ],
  'job.retry': async (functions, itemIndex) => {
    const url = `${jobPath(functions, itemIndex)}/retry`;
    const job = await data<Job>(functions, { method: 'POST', url }, itemIndex);
    return [{ json: await waited(functions, itemIndex, job) }];
  },
  'job.download': async (functions, itemIndex) => {
    const job = await data<Job>(functions, { method: 'GET', url: jobPath(functions, itemIndex) }, itemIndex);
    const name = text(functions, 'outputName', itemIndex) || undefined;
    return [{ json: job, binary: await file(functions, itemIndex, job, name) }];
  },
  'job.getAll': async (functions, itemIndex) => {
    const isAll = functions.getNodeParameter('returnAll', itemIndex) as boolean;
    const most = isAll
      ? Number.POSITIVE_INFINITY
      : (functions.getNodeParameter('limit', itemIndex) as number);
    const status = text(functions, 'status', itemIndex) || undefined;
    const jobs: Job[] = [];
    for (let cursor: string | undefined; ; ) {
      const qs = without({ status, cursor, limit: Math.min(PAGE, most - jobs.length) });
      const page = await data<{ jobs: Job[]; nextCursor: string | null }>(
        functions,
        { method: 'GET', url: '/v1/jobs', qs },
        itemIndex,
      );
      jobs.push(...page.jobs);
      if (page.nextCursor === null || jobs.length >= most) return jobs.map((json) => ({ json }));
      cursor = page.nextCursor;
    }
  },
  'voiceMessage.send': async (functions, itemIndex) => {
    const body = without({
      instance: text(functions, 'instance', itemIndex),
      number: text(functions, 'number', itemIndex),
    });
    const url = `${jobPath(functions, itemIndex)}/voice-message`;
    const headers = { 'Idempotency-Key': idempotencyKey(functions, itemIndex) };
    return [{ json: await data(functions, { method: 'POST', url, headers, body }, itemIndex) }];
  },
};

/** The options that were filled in. */
function asked(functions: IExecuteFunctions, itemIndex: number): IDataObject {
  return without(functions.getNodeParameter('options', itemIndex, {}) as IDataObject);
}

/** Without what is empty. */
function without(fields: IDataObject): IDataObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== ''),
  );
}

function cut({ start, end, track }: IDataObject): IDataObject {
  const index = /^\d+$/.test(String(track)) ? Number(track) : track;
  return without({ start: start || undefined, end: end || undefined, track: index });
}

/** @param wanted name of the output whose file goes on; default the first */
async function submitted(
  functions: IExecuteFunctions,
  itemIndex: number,
  request: IDataObject,
  wanted?: string,
): Promise<INodeExecutionData[]> {
  const { filename, webhook } = asked(functions, itemIndex);
  const source = await sourceOf(functions, itemIndex);
  const accepted = await data<Job>(
    functions,
    {
      method: 'POST',
      url: '/v1/extract',
      body: { source, ...request, options: without({ filename, webhook }) },
    },
    itemIndex,
  );
  const job = await waited(functions, itemIndex, accepted);
  const isEnded =
    job.status === 'completed' && functions.getNodeParameter('operation', itemIndex) !== 'probe';
  if (!isEnded || text(functions, 'outputProperty', itemIndex) === '') return [{ json: job }];
  return [{ json: job, binary: await file(functions, itemIndex, job, wanted) }];
}

async function waited(functions: IExecuteFunctions, itemIndex: number, job: Job): Promise<Job> {
  if (!functions.getNodeParameter('wait', itemIndex)) return job;
  return ended(functions, job.jobId, functions.getNodeParameter('minutes', itemIndex) as number, itemIndex);
}

async function sourceOf(functions: IExecuteFunctions, itemIndex: number): Promise<IDataObject> {
  const type = text(functions, 'source', itemIndex);
  if (type === 'upload') return { type, file: text(functions, 'upload', itemIndex) };
  if (type === 'binary') return { type: 'upload', file: await uploaded(functions, itemIndex) };
  const { header = [] } = (asked(functions, itemIndex).headers ?? {}) as {
    header?: { name: string; value: string }[];
  };
  const headers = Object.fromEntries(header.map(({ name, value }) => [name, value]));
  return { type, url: text(functions, 'url', itemIndex), ...(header.length === 0 ? {} : { headers }) };
}

/** Streams the binary data of an item where n8n keeps it outside of memory. */
async function uploaded(functions: IExecuteFunctions, itemIndex: number): Promise<string> {
  const property = text(functions, 'binaryProperty', itemIndex);
  const { id, fileName = 'video', mimeType } = functions.helpers.assertBinaryData(itemIndex, property);
  const body = id
    ? await functions.helpers.getBinaryStream(id)
    : await functions.helpers.getBinaryDataBuffer(itemIndex, property);
  const size = id ? (await functions.helpers.getBinaryMetadata(id)).fileSize : (body as Buffer).length;
  const headers = {
    // RFC 8187: names that are not ASCII.
    'Content-Disposition': `attachment; filename*=UTF-8''${encodeURIComponent(fileName).replace(/['()*]/g, encodeByte)}`,
    'Content-Type': mimeType || 'application/octet-stream',
    'Content-Length': String(size),
  };
  // n8n's limit is of the whole request, 5 minutes, and it keeps a body that a redirect may need.
  const sending = { method: 'POST', url: '/v1/uploads', headers, body, json: false, timeout: 0 } as const;
  return (await data<{ file: string }>(functions, sending, itemIndex)).file;
}

const encodeByte = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** The bucket that an address may lead to gets no key: the signed address needs none. */
async function file(
  functions: IExecuteFunctions,
  itemIndex: number,
  { jobId, status, error, outputFiles = [] }: Job,
  name: string | undefined,
): Promise<NonNullable<INodeExecutionData['binary']>> {
  const found = name === undefined ? outputFiles[0] : outputFiles.find((one) => one.name === name);
  if (found?.url === undefined) {
    const why = error ? `: ${error.code}` : '';
    const message = `The job ${jobId} (${status}${why}) has no file ${name ?? 'to download'}`;
    throw new NodeOperationError(functions.getNode(), message, { itemIndex });
  }
  const { url } = await functions.getCredentials('soundpostApi', itemIndex);
  const { body, headers, statusCode } = await functions.helpers.httpRequest({
    // The service's own idea of its address may not lead there from n8n.
    url: String(url).replace(/\/+$/, '') + found.url.slice(found.url.indexOf('/v1/download/')),
    encoding: 'stream',
    returnFullResponse: true,
    ignoreHttpStatusErrors: true,
    timeout: 0,
  });
  if (statusCode !== 200 || headers['content-disposition'] === undefined) {
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(Buffer.from(chunk));
    dataOf(functions, parsed(Buffer.concat(chunks).toString()), statusCode, itemIndex);
  }
  const binary = await functions.helpers.prepareBinaryData(body, found.filename, headers['content-type']);
  return { [text(functions, 'outputProperty', itemIndex)]: binary };
}

/** The same when n8n repeats the node (Retry On Fail), so that one message is sent. */
function idempotencyKey(functions: IExecuteFunctions, itemIndex: number): string {
  const run = functions.getWorkflowDataProxy(itemIndex).$runIndex as number;
  return `n8n-${functions.getExecutionId()}-${functions.getNode().id}-${run}-${itemIndex}`;
}
