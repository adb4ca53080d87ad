/** Each completed job has its one file, which is what the job says it is, and nobody else has any. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until } from 'soundpost-testing/until';
import type { AcceptedJob, Stand } from './stand.ts';

const run = promisify(execFile);

/** A lossy codec's frames and delay: what a result may differ in length from its source, seconds. */
const LENGTH_TOLERANCE = 0.15;

export async function fileFaults(stand: Stand): Promise<string[]> {
  const lengths = new Map<string, number>();
  const faults: string[] = [];
  for (const job of stand.accepted) {
    const found = await resultFaults(stand, job, lengths);
    faults.push(...found.map((sentence) => `${job.jobId}: ${sentence}`));
  }
  await sweepLater(stand);
  return [...faults, ...(await storageFaults(stand))];
}

/** @param lengths decoded seconds by sha256: the same video gives the same bytes, so few have to be decoded */
async function resultFaults(
  stand: Stand,
  { jobId, submission, seconds }: AcceptedJob,
  lengths: Map<string, number>,
): Promise<string[]> {
  const { last } = stand.observer.of(jobId);
  if (last?.status !== 'completed') return [];
  const { outputFile } = last;
  const client = stand.clientOf(submission.key ?? stand.home.key);
  const { status, bytes } = await until(`the file of ${jobId}`, async () => {
    const answer = await client.bytes(`/v1/download/${jobId}`);
    return answer.status !== 503 && answer;
  });
  if (status !== 200) return [`its file cannot be fetched: HTTP ${status}`];
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  if (sha256 !== outputFile.sha256) return ['its file is not the one that its sha256 says'];
  if (bytes.length !== outputFile.size) return ['its file is not as large as it says'];
  const decoded = lengths.get(sha256) ?? (await decodedSeconds(stand, bytes));
  lengths.set(sha256, decoded);
  const faults: string[] = [];
  if (Math.abs(decoded - outputFile.duration) > LENGTH_TOLERANCE) {
    faults.push(`its file lasts ${decoded} s, and not ${outputFile.duration} s as it says`);
  }
  if (seconds !== undefined && Math.abs(decoded - seconds) > LENGTH_TOLERANCE) {
    faults.push(`its file lasts ${decoded} s, but its source ${seconds} s`);
  }
  return faults;
}

/** Counted by decoding everything, since a header may say what it likes. */
async function decodedSeconds(stand: Stand, bytes: Buffer): Promise<number> {
  const path = join(stand.folder, 'decoded');
  await writeFile(path, bytes);
  const { stdout } = await run('ffmpeg', [
    ...['-v', 'error', '-xerror', '-i', path, '-f', 'null', '-progress', 'pipe:1', '-'],
  ]).catch(() => ({ stdout: '' }));
  const microseconds = [...stdout.matchAll(/^out_time_us=(\d+)/gm)].at(-1)?.[1];
  return Number(microseconds ?? Number.NaN) / 1e6;
}

/** The janitor lets files settle for a minute, and what a dead writer left for a day: it works as if those were over. */
async function sweepLater({ data, redis }: Stand): Promise<void> {
  const script = fileURLToPath(new URL('./sweep-later.ts', import.meta.url));
  await run(process.execPath, [script, redis.socketUrl, data]);
}

async function storageFaults(stand: Stand): Promise<string[]> {
  const files = await readdir(join(stand.data, 'files'), { recursive: true, withFileTypes: true }).catch(
    () => [],
  );
  const unfinished = await readdir(join(stand.data, '.unfinished')).catch(() => []);
  const faults = unfinished.map((name) => `.unfinished/${name} is not going to be removed`);
  const byJob = Map.groupBy(
    files.filter((entry) => entry.isFile()),
    ({ parentPath }) => parentPath.split('/').at(-1) ?? '',
  );
  const jobs = new Map(stand.accepted.map((job) => [job.jobId, job]));
  for (const [jobId, entries] of byJob) {
    const job = jobs.get(jobId);
    const names = entries.map(({ name }) => name);
    // Of one attempt: the result, and where a voice message was asked for its rendition.
    const expected = job === undefined || stand.observer.of(jobId).last?.status !== 'completed' ? 0 : 1;
    const results = names.filter((name) => !name.endsWith('.voice.ogg'));
    const renditions = names.filter((name) => name.endsWith('.voice.ogg'));
    const wanted = expected === 1 && asksForVoice(job) ? 1 : 0;
    if (results.length !== expected || renditions.length !== wanted) {
      faults.push(
        `${jobId}: has the files ${names.join(', ')}, and not ${expected} with ${wanted} for a chat`,
      );
    }
    if (new Set(names.map((name) => name.split('.')[0])).size > 1) {
      faults.push(`${jobId}: has files of several attempts: ${names.join(', ')}`);
    }
  }
  return faults;
}

function asksForVoice(job: AcceptedJob | undefined): boolean {
  const options = job?.submission.options;
  return job?.submission.voice === true || (options !== undefined && 'voiceMessage' in options);
}
