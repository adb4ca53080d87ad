/** The first view: sources, what is to be made of them, and off they go. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { announce } from '../../announcements.ts';
import { goTo } from '../../route.ts';
import { Button, Fault, useWork, ViewHead } from '../../ui.tsx';
import { Batch } from './batch.tsx';
import { choices, forgetChoices, wantedOf } from './choices.ts';
import { curlOf } from './curl.ts';
import { ResultChoices } from './result-choices.tsx';
import { SourceCard, useDrop } from './source-card.tsx';
import {
  addAddresses,
  addressFault,
  eraseSources,
  isRefused,
  type Source,
  sayFault,
  sources,
} from './sources.ts';
import { useStore } from './store.ts';
import { submitAddress, submitAll, submitOne } from './submit.ts';
import { Tracks } from './tracks.tsx';
import { chosenPart, Trim } from './trim.tsx';

const WAITING = 'The job starts when the upload is complete.';
const BUSY = 'Press “Start another” before you add files.';

/** When somebody signs out, nothing of theirs stays. */
export function forgetNewJob(): void {
  eraseSources();
  forgetChoices();
}

/** @param isShown what was begun stays and goes on while somebody looks elsewhere */
export function NewJob({ isShown }: { readonly isShown: boolean }) {
  const { wanted, list } = useStore(sources);
  const [fault, setFault] = useState('');
  const isBatch = wanted !== undefined;
  const isOver = useDrop(isShown && !isBatch, () => setFault(isShown && isBatch ? BUSY : ''));
  useEffect(() => setFault(''), [isShown, isBatch]);
  useEffect(() => {
    // Fetched before a connection can break.
    void import('tus-js-client').catch(() => undefined);
  }, []);
  return (
    <section id="view-new" class="view" aria-labelledby="new-title">
      <ViewHead id="new" title="New extraction">
        <p class="soft">Extract the audio from one or many videos.</p>
      </ViewHead>
      {isBatch && list.length > 0 ? <Batch fault={fault} /> : <NewForm isShown={isShown} isOver={isOver} />}
    </section>
  );
}

function NewForm({ isShown, isOver }: { readonly isShown: boolean; readonly isOver: boolean }) {
  const { list, typed } = useStore(sources);
  const { busy, fault, run, setFault } = useWork();
  const [note, setNote] = useState('');
  const shown = useRef(isShown);
  shown.current = isShown;
  useEffect(() => {
    if (!isShown) {
      setFault('');
      sayFault('');
    }
  }, [isShown]);
  const isForOne = list.length + (typed.trim() === '' ? 0 : 1) < 2;
  const [only] = list.length === 1 ? list : [];

  async function submit(): Promise<void> {
    const source = sourceOf();
    if (source === undefined) return;
    if (source === 'several') {
      submitAll();
      return;
    }
    const part = chosenPart();
    if (part === undefined) return;
    try {
      arrived(
        typeof source === 'string'
          ? await submitAddress(source, wantedOf(choices.get(), part, true))
          : await submitOne({ source, onWait: () => setNote(WAITING), wanted: wantedNow }),
      );
    } finally {
      setNote('');
    }
  }

  function arrived(jobId: string | undefined): void {
    if (jobId === undefined) return;
    if (shown.current) goTo(`#/jobs/${jobId}`);
    else announce('Job submitted. Find it in the history.');
  }

  return (
    <form
      id="new-form"
      class="new-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void run(submit);
      }}
    >
      <section class="card source" aria-labelledby="source-title">
        <h2 id="source-title">{titleOf(list)}</h2>
        <SourceCard isOver={isOver} />
        {isForOne && (only ?? typed.trim()) !== '' ? (
          <Tracks of={only === undefined ? typed.trim() : String(only.id)} />
        ) : null}
        {isForOne ? <Trim file={only?.upload === undefined ? undefined : only.file} /> : null}
      </section>
      <section class="card choices" aria-labelledby="choices-title">
        <h2 id="choices-title">Result</h2>
        <ResultChoices isForOne={isForOne} />
        <Fault text={fault} id="new-error" />
        <div class="submit-line">
          <Button id="extract" type="submit" class="primary wide" busy={busy}>
            Extract audio
          </Button>
          <CurlButton list={list} typed={typed} isForOne={isForOne} onFault={setFault} />
        </div>
        <p id="extract-note" class="hint centred" role="status">
          {note}
        </p>
      </section>
    </form>
  );
}

function titleOf(list: readonly Source[]): string {
  if (list.length < 2) return 'Source';
  const refused = list.filter(isRefused).length;
  return `${list.length} sources${refused === 0 ? '' : `, ${refused} unsupported`}`;
}

function wantedNow() {
  const part = chosenPart();
  return part === undefined ? undefined : wantedOf(choices.get(), part, true);
}

/**
 * What is to be submitted: one source of the list, or an address that only stands in the field, or several of the list. Where there is nothing, it is said, and
 * what helps is brought forward.
 */
function sourceOf(): Source | string | 'several' | undefined {
  const typed = sources.get().typed.trim();
  const hasOthers = sources.get().list.length > 0;
  if (!hasOthers || typed !== '') {
    const fault = addressFault(typed);
    if (fault !== '') {
      sayFault(fault);
      document.getElementById('url')?.focus();
      return undefined;
    }
    if (!hasOthers) return typed;
    addAddresses(typed);
  }
  const { list } = sources.get();
  const [first, second] = list;
  if (second !== undefined) return anyOf(list);
  const isStopped = first?.upload?.phase === 'failed';
  if (first === undefined || isRefused(first) || isStopped) {
    document.getElementById(isStopped ? 'upload-pause' : 'chosen-remove')?.focus();
    return undefined;
  }
  return first;
}

function anyOf(list: readonly Source[]): 'several' | undefined {
  if (!list.every(isRefused)) return 'several';
  sayFault('None of these can be extracted; each shows why. Remove them or add others.');
  return undefined;
}

interface CurlProps {
  readonly list: readonly Source[];
  readonly typed: string;
  readonly isForOne: boolean;
  readonly onFault: (text: string) => void;
}

function CurlButton({ list, typed, isForOne, onFault }: CurlProps) {
  const [shown, setShown] = useState('');
  const [isCopied, setCopied] = useState(false);
  const output = useRef<HTMLTextAreaElement>(null);
  useEffect(() => output.current?.select(), [shown]);

  async function copy(): Promise<void> {
    const url = typed.trim();
    const all = [...list, ...(url === '' ? [] : [{ id: 0, name: url, url, fault: '' }])].filter(
      (source) => !isRefused(source),
    );
    if (all.length === 0) {
      sayFault(addressFault(''));
      return;
    }
    const part = isForOne ? chosenPart() : {};
    if (part === undefined) return;
    onFault('');
    const command = curlOf(all, wantedOf(choices.get(), part, isForOne));
    try {
      // Only where the page came by TLS, or from this machine.
      await navigator.clipboard.writeText(command);
      setCopied(true);
      announce('Command copied');
      setTimeout(() => setCopied(false), 2500);
    } catch {
      setShown(command);
    }
  }

  return (
    <>
      <Button id="copy-curl" class="wide" icon={isCopied ? 'done' : 'copy'} onClick={() => void copy()}>
        {isCopied ? 'Copied' : 'Copy as curl'}
      </Button>
      {shown === '' ? null : (
        <textarea
          id="curl"
          class="command"
          aria-label="Command"
          readOnly
          rows={8}
          value={shown}
          ref={output}
        />
      )}
    </>
  );
}
