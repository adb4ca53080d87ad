/** What the key has left of its limits, what it used by day, and what it may do. */
import type { Usage as UsageAnswer, UsageDay } from 'soundpost-contract/answers';
import type { z } from 'zod';
import { api } from '../session.ts';
import { Facts, Fault, ViewHead } from '../ui.tsx';
import { usePolled } from '../use-polled.ts';
import { about, size } from '../words.ts';

type Told = z.infer<typeof UsageAnswer>;

/** Days of the table, today included. */
const DAYS = 14;
const DAY_MS = 24 * 60 * 60 * 1000;

export function Usage() {
  const { answer: usage, fault } = usePolled((signal) => api().usage({ signal, from: firstDay() }), {
    mayMove: () => true,
  });
  return (
    <section id="view-usage" class="view" aria-labelledby="usage-title">
      <ViewHead id="usage" title="Usage">
        <p class="soft">Limits of this key and how much is left.</p>
      </ViewHead>
      <Fault text={fault} id="usage-error" />
      <div id="meters" class="meters">
        {usage === undefined ? null : <Meters usage={usage} />}
      </div>
      {usage?.days === undefined ? null : <Days days={usage.days} />}
      {usage === undefined ? null : <KeyCard usage={usage} />}
    </section>
  );
}

const firstDay = (): string => new Date(Date.now() - (DAYS - 1) * DAY_MS).toISOString().slice(0, 10);

function Days({ days }: { readonly days: readonly UsageDay[] }) {
  const most = Math.max(...days.map(({ audioSeconds }) => audioSeconds), 1);
  return (
    <section class="card" aria-labelledby="days-title">
      <h2 id="days-title">The last two weeks</h2>
      <p class="soft">By day (UTC). A job counts on the day it finished.</p>
      <div class="table-frame">
        <table class="job-table" aria-labelledby="days-title">
          <thead>
            <tr>
              <th scope="col">Day</th>
              <th scope="col">Hours of audio</th>
              <th scope="col">
                <span class="visually-hidden">Compared</span>
              </th>
              <th scope="col">Jobs</th>
              <th scope="col">Failed</th>
              <th scope="col">Output</th>
            </tr>
          </thead>
          <tbody id="days">
            {days.toReversed().map(({ day, audioSeconds, jobs, failed, bytesOut }) => (
              <tr key={day} data-day={day}>
                <th scope="row" class="number">
                  {dayWord(day)}
                </th>
                <td class="number">{hours(audioSeconds)}</td>
                <td class="row-main">
                  <progress max={most} value={audioSeconds} aria-hidden="true" />
                </td>
                <td class="number">{jobs.toLocaleString()}</td>
                <td class="number">{failed.toLocaleString()}</td>
                <td class="number">{size(bytesOut)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** @param day as in `2026-01-02`, of UTC */
const dayWord = (day: string): string =>
  new Date(day).toLocaleDateString([], { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Two digits behind the point. */
const hours = (seconds: number): string =>
  (seconds / 3600).toLocaleString([], { minimumFractionDigits: 2, maximumFractionDigits: 2 });

function Meters({ usage }: { readonly usage: Told }) {
  const { submissions, reads, unfinishedJobs, uploads, uploadBytes, eventStreams } = usage;
  const { recordBytes, transcriptSeconds, processorSeconds } = usage;
  return (
    <>
      <Meter name="Submissions per minute" {...submissions} />
      <Meter name="Requests per minute" {...reads} />
      <Meter name="Size of job records per minute" {...recordBytes} show={size} />
      {transcriptSeconds && <Meter name="Transcribed audio per day" {...transcriptSeconds} show={minutes} />}
      {processorSeconds && <Meter name="Processor seconds per minute" {...processorSeconds} />}
      <Meter name="Unfinished jobs" {...unfinishedJobs} about="at a time" />
      <Meter name="Uploads" {...uploads} about="unfinished, or kept" />
      <Meter name="Size of uploads" {...uploadBytes} show={size} about="together" />
      <Meter name="Event streams" {...eventStreams} about="open now" />
    </>
  );
}

const minutes = (seconds: number): string => `${Math.ceil(seconds / 60).toLocaleString()} min`;

interface MeterProps {
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  /** In how many seconds all of it is there again. */
  readonly resetSeconds?: number;
  /** Where it does not renew by itself. */
  readonly about?: string;
  /** Default: as a number. */
  readonly show?: (amount: number) => string;
}

function Meter({
  name,
  limit,
  remaining,
  resetSeconds = 0,
  about,
  show = (amount) => amount.toLocaleString(),
}: MeterProps) {
  const id = `meter-${name.toLowerCase().replaceAll(' ', '-')}`;
  return (
    <section class="card meter" aria-labelledby={id}>
      <h2 id={id}>{name}</h2>
      <p class="meter-number">
        <strong>{show(remaining)}</strong> of {show(limit)} left
      </p>
      <progress max={limit} value={limit - remaining} aria-labelledby={id} />
      <p class="hint">
        {about ?? (resetSeconds > 0 ? `resets in ${renewal(resetSeconds)}` : 'nothing used')}
      </p>
    </section>
  );
}

const renewal = (seconds: number): string => (seconds < 60 ? `${Math.ceil(seconds)} s` : about(seconds));

function KeyCard({ usage: { key } }: { readonly usage: Told }) {
  const all = key.instances.includes('*');
  return (
    <section id="key-card" class="card" aria-labelledby="key-title">
      <h2 id="key-title">Key</h2>
      <Facts
        id="key-facts"
        rows={[
          ['Name', key.name],
          ['Id', key.id],
          ['Permissions', key.scopes.join(', ')],
          ['Instances', all ? 'all' : key.instances.join(', ') || 'none'],
        ]}
      />
    </section>
  );
}
