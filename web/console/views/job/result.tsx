/** What a job has made: to hear, to read along, to download, to pass on, to erase. */
import { useEffect, useMemo } from 'preact/hooks';
import type { AnyOutputFile, Job, OutputFile } from 'soundpost-contract/job';
import { announce } from '../../announcements.ts';
import { erase } from '../../job-actions.ts';
import { goTo } from '../../route.ts';
import { reachable } from '../../session.ts';
import { Button, confirmed, Facts, Fault, Icon, useWork } from '../../ui.tsx';
import { channelWord, nameOf, type Output, outputsOf, size, time, until } from '../../words.ts';
import { CopyNote, useCopy } from './copy.tsx';
import { Player } from './player.tsx';
import { openSound } from './sound.ts';
import { Transcript } from './transcript.tsx';

interface ResultProps {
  readonly job: Job;
  readonly file: OutputFile;
  /** Of the file, signed. */
  readonly url: string;
}

export function Result({ job, file, url }: ResultProps) {
  const sound = useMemo(() => openSound(reachable(url), file.duration, file.filename), [url]);
  useEffect(() => () => sound.close(), [sound]);
  const others = job.outputFiles.slice(1);
  return (
    <section id="job-result" class="card" aria-labelledby="result-title">
      <div class="card-head">
        <h2 id="result-title">Result</h2>
        <span id="result-expires" class="soft">
          {until(file.expiresAt)}
        </span>
      </div>
      <Player sound={sound} file={file} waveformFile={waveformOf(job)} />
      <Transcript job={job} file={file} sound={sound} />
      <Warnings job={job} />
      <Facts id="facts" rows={factsOf(file)} />
      {others.length === 0 ? null : <Files files={others} />}
      <Actions job={job} file={file} url={url} />
    </section>
  );
}

export function Files({ files }: { readonly files: readonly AnyOutputFile[] }) {
  return (
    <ul id="other-files" class="other-files" aria-label="Other files">
      {files.map((file) => (
        <OtherFile key={file.name} file={file} />
      ))}
    </ul>
  );
}

/** The file that draws what the first one sounds like: a waveform of the same part of the same track. */
function waveformOf(job: Job): AnyOutputFile | undefined {
  const [first, ...others] = outputsOf(job);
  if (first === undefined) return undefined;
  const name = others.find((output) => output.format === 'waveform' && isOfSame(output, first))?.name;
  return name === undefined ? undefined : job.outputFiles.find((file) => file.name === name);
}

const isOfSame = (one: Output, other: Output): boolean =>
  one.track === other.track &&
  one.start === other.start &&
  one.end === other.end &&
  clockOf(one) === clockOf(other);

function clockOf(output: Output): string {
  const timeline = 'timeline' in output ? output.timeline : undefined;
  return timeline ?? (output.format === 'voice' ? 'audio' : 'source');
}

function Warnings({ job: { warnings } }: { readonly job: Job }) {
  return (
    <>
      {warnings.map(({ code, message }) => (
        <p key={code} class="note">
          {message}
        </p>
      ))}
    </>
  );
}

function factsOf(file: OutputFile): [string, string | undefined][] {
  const { format, codec, duration, bitrate, channels, sampleRate, loudness, copied } = file;
  const levelled =
    loudness && `${loudness.outputLufs.toFixed(1)} LUFS, from ${loudness.inputLufs.toFixed(1)}`;
  return [
    ['Format', format === codec ? format.toUpperCase() : `${format.toUpperCase()} · ${codec}`],
    ['Duration', time(duration)],
    ['Size', size(file.size)],
    ['Bitrate', bitrate.replace('k', ' kbit/s')],
    ['Sound', `${channelWord(channels)} · ${sampleRate / 1000} kHz`],
    ['Loudness', levelled],
    ['Audio', copied ? 'Copied' : 'Encoded'],
  ];
}

function OtherFile({ file: { url, filename, size: bytes } }: { readonly file: AnyOutputFile }) {
  return (
    <li>
      {url === undefined ? (
        filename
      ) : (
        <a href={reachable(url)} download={filename}>
          {filename}
        </a>
      )}
      {` · ${size(bytes)}`}
    </li>
  );
}

function Actions({ job, file, url }: ResultProps) {
  const { busy, fault, run } = useWork();
  const { copied, copy } = useCopy();

  async function eraseFile(): Promise<void> {
    const sure = await confirmed({
      title: `Erase ${nameOf(job)}?`,
      text: 'The file is deleted and its link stops working. The job stays in the history.',
      yes: 'Erase it',
    });
    if (!sure) return;
    await erase(job.jobId);
    announce('Erased');
    goTo('#/jobs');
  }

  return (
    <>
      <CopyNote copied={copied} id="share-note" />
      <Fault text={fault} />
      <div class="card-foot result-foot">
        <Button id="job-erase" class="plain" icon="bin" busy={busy} onClick={() => void run(eraseFile)}>
          Erase
        </Button>
        <Button
          id="job-share"
          icon="share"
          onClick={() => void copy(new URL(url, document.baseURI).href, sharedUntil(file.expiresAt))}
        >
          Share link
        </Button>
        <a id="download" class="button primary" href={reachable(url)} download={file.filename}>
          <Icon name="download" />
          Download
        </a>
      </div>
    </>
  );
}

function sharedUntil(iso: string): string {
  const end = new Date(iso).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
  return `Link copied. Anyone with it can download the file until ${end}, without a key.`;
}
