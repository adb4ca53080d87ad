/** Requests to the service, and its answers. */
import type {
  IDataObject,
  IExecuteFunctions,
  IHookFunctions,
  IHttpRequestOptions,
  IWebhookFunctions,
} from 'n8n-workflow';
import { NodeApiError, sleep } from 'n8n-workflow';

export type Functions = IExecuteFunctions | IHookFunctions | IWebhookFunctions;

interface Failure {
  code: string;
  message: string;
  details?: string;
}

export interface Job extends IDataObject {
  jobId: string;
  status: 'queued' | 'processing' | 'completed' | 'failed';
  error?: Failure;
  outputFiles?: { name: string; filename: string; url?: string }[];
  transcripts?: { name: string; status: string; error?: Failure | null }[];
}

const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 10_000;

/**
 * The `data` of an answer.
 * @throws NodeApiError in the service's own words: n8n's sentences for a status know neither what is
 * wrong nor what helps
 */
export async function data<Data extends IDataObject = IDataObject>(
  functions: Functions,
  options: Omit<IHttpRequestOptions, 'baseURL'>,
  itemIndex = 0,
): Promise<Data> {
  const { url } = await functions.getCredentials('soundpostApi', itemIndex);
  const request: IHttpRequestOptions = {
    ...{ json: true, disableFollowRedirect: true, ...options },
    baseURL: String(url).replace(/\/+$/, ''),
    returnFullResponse: true,
    ignoreHttpStatusErrors: true,
  };
  const call = functions.helpers.httpRequestWithAuthentication;
  const answer = await call.call(functions, 'soundpostApi', request);
  const body: unknown = typeof answer.body === 'string' ? parsed(answer.body) : answer.body;
  return dataOf<Data>(functions, body, answer.statusCode, itemIndex);
}

/** @throws NodeApiError for an error of the service, or a body that is not its */
export function dataOf<Data>(functions: Functions, body: unknown, status: number, itemIndex: number): Data {
  const envelope = body as { success?: boolean; data?: Data; error?: Failure } | undefined;
  if (envelope?.success === true && envelope.data !== undefined) return envelope.data;
  const message = `The address answered ${status} without an envelope. Check Service URL in the credentials.`;
  const words = envelope?.error ? said(envelope.error) : { message };
  throw failure(functions, words, itemIndex, String(status));
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface Words {
  readonly message: string;
  readonly description?: string;
}

function failure(functions: Functions, words: Words, itemIndex: number, httpCode?: string): NodeApiError {
  return new NodeApiError(functions.getNode(), { message: words.message }, { itemIndex, httpCode, ...words });
}

function said({ code, message, details }: Failure): Words {
  return { message: `${code}: ${message}`, ...(details === undefined ? {} : { description: details }) };
}

/**
 * The ended job.
 * @throws NodeApiError for a job or transcript that failed, or has not ended after `minutes`
 */
export async function ended(
  functions: IExecuteFunctions,
  jobId: string,
  minutes: number,
  itemIndex: number,
): Promise<Job> {
  const until = Date.now() + minutes * 60_000;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)) {
    const job = await data<Job>(
      functions,
      { method: 'GET', url: `/v1/jobs/${encodeURIComponent(jobId)}` },
      itemIndex,
    );
    if (job.status === 'failed') {
      const error = job.error ?? { code: 'INTERNAL_ERROR', message: `the job ${jobId} failed` };
      throw failure(functions, said(error), itemIndex);
    }
    const { transcripts = [] } = job;
    const failed = transcripts.find(({ status }) => status === 'failed')?.error;
    if (failed) {
      throw failure(functions, said(failed), itemIndex);
    }
    const isPending = transcripts.some(({ status }) => status === 'pending');
    if (job.status === 'completed' && !isPending) return job;
    if (Date.now() + pauseMs > until) {
      const message = `The job ${jobId} has not ended after ${minutes} minutes`;
      const description = 'It goes on. Ask for it with Job: Get, or set Wait at Most higher.';
      throw failure(functions, { message, description }, itemIndex);
    }
    await sleep(pauseMs);
  }
}
