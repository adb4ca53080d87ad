/** Requests to the service, and its answers. */
import type {
  IDataObject,
  IExecuteFunctions,
  IHookFunctions,
  IHttpRequestOptions,
  IWebhookFunctions,
  JsonObject,
} from 'n8n-workflow';
import { NodeApiError, sleep } from 'n8n-workflow';

export type Functions = IExecuteFunctions | IHookFunctions | IWebhookFunctions;

export interface Job extends IDataObject {
  jobId: string;
  status: 'queued' | 'processing' | 'completed' | 'failed';
  error?: { code: string; message: string; details?: string };
}

const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 10_000;

/** The whole answer. @throws NodeApiError in the service's own words */
export async function ask(
  functions: Functions,
  options: Omit<IHttpRequestOptions, 'baseURL'>,
  itemIndex = 0,
): Promise<{ body: unknown; headers: Record<string, string>; statusCode: number }> {
  const { url } = await functions.getCredentials('soundpostApi', itemIndex);
  try {
    return await functions.helpers.httpRequestWithAuthentication.call(functions, 'soundpostApi', {
      ...options,
      baseURL: String(url).replace(/\/+$/, ''),
      returnFullResponse: true,
    });
  } catch (error) {
    throw new NodeApiError(functions.getNode(), error as JsonObject, { itemIndex, ...told(error) });
  }
}

/** The `data` of the answer. */
export async function data<Data extends IDataObject = IDataObject>(
  functions: Functions,
  options: Omit<IHttpRequestOptions, 'baseURL'>,
  itemIndex = 0,
): Promise<Data> {
  const { body } = await ask(functions, { json: true, ...options }, itemIndex);
  return (body as { data: Data }).data;
}

/** The service says what is wrong and what helps: n8n's own sentences know neither. */
function told(error: unknown): { message?: string; description?: string } {
  const { response, context } = error as {
    response?: { data?: unknown; body?: unknown };
    context?: { data?: unknown };
  };
  const body = (response?.data ?? response?.body ?? context?.data) as { error?: Job['error'] } | undefined;
  return body?.error === undefined ? {} : said(body.error);
}

function said({ code, message, details }: NonNullable<Job['error']>): {
  message: string;
  description?: string;
} {
  return { message: `${code}: ${message}`, ...(details === undefined ? {} : { description: details }) };
}

/**
 * The ended job.
 * @throws NodeApiError for a job that failed, or has not ended after `minutes`
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
      throw new NodeApiError(functions.getNode(), { ...error }, { itemIndex, ...said(error) });
    }
    if (job.status === 'completed' && !areTranscriptsPending(job)) return job;
    if (Date.now() + pauseMs > until) {
      const message = `The job ${jobId} has not ended after ${minutes} minutes`;
      const description = 'It goes on. Ask for it with Job: Get, or set Wait at Most higher.';
      throw new NodeApiError(functions.getNode(), { message }, { itemIndex, message, description });
    }
    await sleep(pauseMs);
  }
}

function areTranscriptsPending({ transcripts }: Job): boolean {
  return Array.isArray(transcripts) && transcripts.some((each) => (each as IDataObject).status === 'pending');
}
