/** Checks configured remote services: the bucket, another gateway and the transcriber. */
import { once } from 'node:events';
import { get as getHttps } from 'node:https';
import { within } from 'soundpost-base/deadline';
import { get as getHttp } from 'soundpost-base/node-http';
import { type Finding, messageOf, ok } from './check.ts';

interface BucketFacts {
  readonly bucket: string;
  /** Unset: Amazon's. */
  readonly endpoint: string | undefined;
  readonly region: string;
}

/** @param ping queries the bucket; its error names the remedy */
export async function checkBucket(facts: BucketFacts, ping: () => Promise<void>): Promise<Finding[]> {
  const { bucket, endpoint, region } = facts;
  try {
    await ping();
    return [ok(`the bucket ${bucket} answers`)];
  } catch (error) {
    const server = endpoint === undefined ? '' : ` --endpoint-url ${endpoint}`;
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    const verb = isMissing ? 'mb' : 'ls';
    return [
      {
        verdict: 'fault',
        found: messageOf(error),
        remedy: isMissing ? 'create the bucket, or correct STORAGE_URL' : 'see what the server answers',
        command: `aws s3 ${verb} s3://${bucket} --region ${region}${server}`,
      },
    ];
  }
}

const PATIENCE_MS = 10_000;

/**
 * @param url GATEWAY_URL
 * @param isOurs GATEWAY_KIND=soundpost: it must be ready; another server may give any answer
 */
export async function checkGateway(url: string, isOurs: boolean): Promise<Finding[]> {
  const address = isOurs ? `${url}/health/ready` : url;
  const command = `curl -sS -m 5 -o /dev/null -w '%{http_code}\\n' ${address}`;
  const answer = await statusOf(address);
  if (typeof answer === 'string') {
    const remedy = 'start it, or correct GATEWAY_URL; jobs still run, voice messages wait up to an hour';
    return [{ verdict: 'fault', found: `GATEWAY_URL=${url} cannot be reached (${answer})`, remedy, command }];
  }
  if (isOurs && answer !== 200) {
    const found = `GATEWAY_URL=${url} is reachable, but not ready (HTTP ${answer})`;
    return [
      {
        verdict: 'warning',
        found,
        remedy:
          'check its log, or set GATEWAY_URL to the active gateway; for another server, set GATEWAY_KIND=other',
        command,
      },
    ];
  }
  return [ok(`GATEWAY_URL=${url} answers (HTTP ${answer})`)];
}

/** Not every server lists models: accepts any answer but a rejected key. */
export async function checkTranscriber(url: string, apiKey: string | undefined): Promise<Finding[]> {
  const address = `${url}/models`;
  const headers: Record<string, string> = {};
  if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`;
  const shown = apiKey === undefined ? '' : ' -H "Authorization: Bearer $TRANSCRIBER_API_KEY"';
  const command = `curl -sS -m 5 -o /dev/null -w '%{http_code}\\n'${shown} ${address}`;
  const answer = await statusOf(address, headers);
  if (typeof answer === 'string') {
    const remedy = 'start it, or correct TRANSCRIBER_URL; jobs still run, transcripts wait up to a day';
    const found = `TRANSCRIBER_URL=${url} cannot be reached (${answer})`;
    return [{ verdict: 'fault', found, remedy, command }];
  }
  if (answer === 401 || answer === 403) {
    const found = `TRANSCRIBER_URL=${url} rejects the key (HTTP ${answer})`;
    return [{ verdict: 'fault', found, remedy: 'correct TRANSCRIBER_API_KEY', command }];
  }
  return [ok(`TRANSCRIBER_URL=${url} answers (HTTP ${answer})`)];
}

/** The answer's status, or the error. */
async function statusOf(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number | string> {
  const get = url.startsWith('https:') ? getHttps : getHttp;
  const request = get(url, { agent: false, headers });
  const reason = () => new Error(`no answer within ${PATIENCE_MS / 1000} s`);
  try {
    const [response] = await within(PATIENCE_MS, () => once(request, 'response'), { reason });
    return response.statusCode ?? 0;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code ?? message;
  } finally {
    request.on('error', () => undefined).destroy();
  }
}
