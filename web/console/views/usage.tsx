/** What the key used of its allowances, and what it may do. */
import { useEffect, useState } from 'preact/hooks';
import type { Usage as UsageAnswer } from 'soundpost-contract/answers';
import type { z } from 'zod';
import { api, isAborted, sentence } from '../session.ts';
import { Facts, Fault, ViewHead } from '../ui.tsx';
import { size } from '../words.ts';

const LOOK_MS = 5000;

type Told = z.infer<typeof UsageAnswer>;

export function Usage() {
  const { usage, fault } = useUsage();
  return (
    <section id="view-usage" class="view" aria-labelledby="usage-title">
      <ViewHead id="usage" title="Usage">
        <p class="soft">What this key used, and what it may do.</p>
      </ViewHead>
      <Fault text={fault} id="usage-error" />
      <div id="meters" class="meters">
        {usage === undefined ? null : <Meters usage={usage} />}
      </div>
      {usage === undefined ? null : <KeyCard usage={usage} />}
    </section>
  );
}

function useUsage(): { readonly usage: Told | undefined; readonly fault: string } {
  const [usage, setUsage] = useState<Told>();
  const [fault, setFault] = useState('');
  useEffect(() => {
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function look(): Promise<void> {
      try {
        setUsage(await api().usage({ signal: ending.signal }));
        setFault('');
      } catch (error) {
        if (isAborted(error)) return;
        setFault(sentence(error));
      }
      timer = setTimeout(look, LOOK_MS);
    }
    void look();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, []);
  return { usage, fault };
}

function Meters({ usage }: { readonly usage: Told }) {
  const { submissions, reads, unfinishedJobs, uploads, uploadBytes, eventStreams } = usage;
  const { recordBytes, transcriptSeconds, processorSeconds } = usage;
  return (
    <>
      <Meter name="Submissions this minute" {...allowance(submissions)} />
      <Meter name="Requests this minute" {...allowance(reads)} />
      <Meter name="Size of job records this minute" {...allowance(recordBytes)} show={size} />
      {transcriptSeconds && (
        <Meter name="Transcribed audio this day" {...allowance(transcriptSeconds)} show={minutes} />
      )}
      {processorSeconds && <Meter name="Processor seconds this minute" {...allowance(processorSeconds)} />}
      <Meter name="Unfinished jobs" {...unfinishedJobs} about="at a time" />
      <Meter name="Uploads" {...uploads} about="unfinished, or kept" />
      <Meter name="Size of uploads" {...uploadBytes} show={size} about="together" />
      <Meter name="Event streams" {...eventStreams} about="open now" />
    </>
  );
}

const minutes = (seconds: number): string => `${Math.ceil(seconds / 60).toLocaleString()} min`;

function allowance({ limit, remaining, resetSeconds }: Told['reads']) {
  const about =
    resetSeconds > 0 ? `the whole allowance again in ${resetSeconds} s` : 'the whole allowance is left';
  return { used: limit - remaining, limit, about };
}

interface MeterProps {
  readonly name: string;
  readonly used: number;
  readonly limit: number;
  readonly about: string;
  /** Default: as a number. */
  readonly show?: (amount: number) => string;
}

function Meter({ name, used, limit, about, show = (amount) => amount.toLocaleString() }: MeterProps) {
  const id = `meter-${name.toLowerCase().replaceAll(' ', '-')}`;
  return (
    <section class="card meter" aria-labelledby={id}>
      <h2 id={id}>{name}</h2>
      <p class="meter-number">
        <strong>{show(used)}</strong> of {show(limit)}
      </p>
      <progress max={limit} value={used} aria-labelledby={id} />
      <p class="hint">{about}</p>
    </section>
  );
}

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
          ['May', key.scopes.join(', ')],
          ['Instances', all ? 'all' : key.instances.join(', ') || 'none'],
        ]}
      />
    </section>
  );
}
