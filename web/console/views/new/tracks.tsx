/**
 * What the only source holds, before a job is made of it: its tracks, of which one can be chosen.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { InputFile, Job } from 'soundpost-contract/job';
import { announce } from '../../announcements.ts';
import { api, sentence } from '../../session.ts';
import { Button, Fault, useWork } from '../../ui.tsx';
import { counted, languageWord, size, time, trackWord } from '../../words.ts';
import { choices, choose } from './choices.ts';
import { addressFault, sayFault, sourceOfJob, sources, whenReady } from './sources.ts';
import { useStore } from './store.ts';

type JobSource = ReturnType<typeof sourceOfJob>;

/** Undefined where there is none yet; what is wrong with it is said. */
async function onlySource(): Promise<JobSource | undefined> {
  const { list, typed } = sources.get();
  const [only] = list;
  if (only !== undefined) {
    const ready = await whenReady(only.id);
    return ready && sourceOfJob(ready);
  }
  const fault = addressFault(typed.trim());
  sayFault(fault);
  if (fault === '') return { type: 'url', url: typed.trim() };
  document.getElementById('url')?.focus();
  return undefined;
}

/** @param of what they belong to: of another source they are asked for anew */
export function Tracks({ of }: { readonly of: string }) {
  const [file, setFile] = useState<InputFile>();
  const { busy, fault, run, setFault } = useWork();
  const ending = useRef<AbortController | undefined>(undefined);
  useEffect(() => {
    setFile(undefined);
    setFault('');
    return () => ending.current?.abort();
  }, [of]);

  async function look(): Promise<void> {
    const source = await onlySource();
    if (source === undefined) return;
    const mine = new AbortController();
    ending.current = mine;
    const { jobId } = await api().extract({ source, output: { format: 'probe' } }, { signal: mine.signal });
    const job: Job = await api()
      .waitFor<null>(jobId, { signal: mine.signal })
      .catch(async (error) => {
        if (mine.signal.aborted) throw error;
        const ended = await api().job(jobId);
        throw ended.error === undefined ? error : new Error(sentence(ended.error));
      });
    if (job.inputFile === null || mine.signal.aborted) return;
    setFile(job.inputFile);
    announce(counted(job.inputFile.tracks.length, 'audio track'));
  }

  return (
    <div class="tracks">
      {file === undefined ? (
        <Button id="show-tracks" class="small" icon="search" busy={busy} onClick={() => void run(look)}>
          {busy ? 'Reading the tracks…' : 'Show tracks'}
        </Button>
      ) : (
        <TrackList file={file} />
      )}
      <Fault text={fault} id="tracks-error" />
    </div>
  );
}

function TrackList({ file }: { readonly file: InputFile }) {
  const { track: chosen } = useStore(choices);
  const { tracks, duration, size: bytes } = file;
  const main = tracks.find((one) => one.default) ?? tracks[0];
  const about = [
    counted(tracks.length, 'audio track'),
    duration === null ? '' : time(Math.round(duration)),
    bytes === null ? '' : size(bytes),
  ];
  return (
    <fieldset id="tracks">
      <legend>{about.filter(Boolean).join(' · ')}</legend>
      <ul class="track-list">
        {tracks.map((track) => (
          <li key={track.index}>
            <label class="track">
              <input
                type="radio"
                name="track-choice"
                disabled={!track.decodable || track.encrypted}
                checked={chosen === String(track.index) || (chosen === '' && track === main)}
                onChange={() => choose({ track: track === main ? '' : String(track.index) })}
              />
              <strong>{languageWord(track.language) ?? `Track ${track.index}`}</strong>
              <span class="soft">{trackWord(track)}</span>
            </label>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}
