/** What a job was made of and how, and beginning another one like it. */
import type { InputFile, Job, Track } from 'soundpost-contract/job';
import { Button, Facts } from '../../ui.tsx';
import { destinationWord, languageWord, outputsOf, size, time, trackWord } from '../../words.ts';
import { startFrom } from '../new/start-from.ts';
import { CopyNote, useCopy } from './copy.tsx';
import { curlOf } from './curl.ts';

export function Details({ job }: { readonly job: Job }) {
  const { copied, copy } = useCopy();
  return (
    <section id="job-details" class="card" aria-labelledby="details-title">
      <div class="card-head">
        <h2 id="details-title">Details</h2>
        <div class="head-actions">
          <Button
            id="job-curl"
            class="small"
            icon="copy"
            onClick={() => void copy(curlOf(job), curlNote(job))}
          >
            Copy as curl
          </Button>
          <Button id="job-again" class="small" onClick={() => startFrom(job)}>
            Reuse source
          </Button>
        </div>
      </div>
      <CopyNote copied={copied} id="curl-note" />
      <Facts id="details" rows={factsOf(job)} />
    </section>
  );
}

function curlNote({ source, destination, outputFiles }: Job): string {
  const isPlaced = destination !== undefined || outputFiles.some((file) => file.destination !== undefined);
  return [
    'Command copied. It reads the key from SOUNDPOST_KEY.',
    source.type === 'url' ? 'If the URL had a query (after ?), add it: it is not shown here.' : '',
    isPlaced ? 'The destination is left out: its URL is for one job.' : '',
  ]
    .filter(Boolean)
    .join(' ');
}

function factsOf(job: Job): [string, string | undefined][] {
  const { source, inputFile, options } = job;
  const [output] = outputsOf(job);
  return [
    ['Source', source.url ?? inputFile?.name ?? source.file],
    ['Source file', inputFile === null ? undefined : fileWord(inputFile)],
    ['Audio tracks', inputFile?.tracks.map((track) => numbered(track, inputFile.tracks)).join('; ')],
    ['Part', output && partWord(output)],
    ['Quality', output !== undefined && 'quality' in output ? output.quality : undefined],
    ['Track', output?.track === undefined ? undefined : String(output.track)],
    ['Webhook', options.webhook],
    ...destinationFacts(job),
  ];
}

/** Of an upload whose job failed early little is known. */
function fileWord({ format, duration, size: bytes }: InputFile): string {
  return [format, duration === null ? null : time(duration), bytes === null ? null : size(bytes)]
    .filter((part) => part !== null)
    .join(' · ');
}

function partWord({
  start,
  end,
}: {
  readonly start?: number | undefined;
  readonly end?: number | undefined;
}) {
  if (start === undefined && end === undefined) return undefined;
  return `${time(start ?? 0)} to ${end === undefined ? 'the end' : time(end)}`;
}

/** Of several that are marked as default the first is taken. */
function numbered(track: Track, tracks: readonly Track[]): string {
  const isMain = track === (tracks.find((one) => one.default) ?? tracks[0]);
  const words = [languageWord(track.language), trackWord(track), isMain ? 'default' : ''];
  return `${track.index}: ${words.filter(Boolean).join(', ')}`;
}

/** Of each file that has one; of the job until there are files. */
function destinationFacts({ destination, outputFiles }: Job): [string, string | undefined][] {
  const placed = outputFiles.flatMap((file) =>
    file.destination === undefined ? [] : [{ name: file.name, state: file.destination }],
  );
  if (placed.length === 0) return [['Destination', destination && destinationWord(destination)]];
  return placed.map(({ name, state }) => [
    outputFiles.length > 1 ? `Destination of ${name}` : 'Destination',
    destinationWord(state),
  ]);
}
