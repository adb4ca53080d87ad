/** Where sources are dropped, chosen and pasted, and the list of them. */
import { useEffect, useState } from 'preact/hooks';
import { Button, Fault, Icon } from '../../ui.tsx';
import { about, size } from '../../words.ts';
import { leftOverNote } from './left-over.ts';
import { SourceRow } from './source-row.tsx';
import {
  addAddresses,
  addFiles,
  addUnreadable,
  faultOf,
  isRefused,
  type Source,
  sources,
  type Total,
  totalOf,
  type,
} from './sources.ts';
import { useStore } from './store.ts';

/** Tells whether files are dragged over the page. @param isWanted whether they may be dropped now */
export function useDrop(isWanted: boolean, onRefused: () => void): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    // Anywhere on the page: who misses the field would otherwise leave the page for the file.
    const ending = new AbortController();
    const on = (name: 'dragover' | 'dragleave' | 'drop', act: (event: DragEvent) => void): void =>
      addEventListener(name, act, { signal: ending.signal });
    on('dragover', (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(isWanted);
    });
    on('dragleave', (event) => {
      if (event.relatedTarget === null) setOver(false);
    });
    on('drop', (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      if (isWanted) takeDropped(event);
      else onRefused();
    });
    return () => ending.abort();
  }, [isWanted]);
  return isOver;
}

/** A text that is dragged belongs into the field where it is dropped. */
const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes('Files') ?? false;

/** A folder looks like a file, and fails only when it is read. */
function takeDropped({ dataTransfer }: DragEvent): void {
  const items = [...(dataTransfer?.items ?? [])].filter(({ kind }) => kind === 'file');
  const files: File[] = [];
  for (const item of items) {
    const entry = item.webkitGetAsEntry();
    const file = item.getAsFile();
    if (entry?.isDirectory === true || file === null) addUnreadable(entry?.name ?? 'A folder');
    else files.push(file);
  }
  addFiles(files);
}

export function SourceCard({ isOver }: { readonly isOver: boolean }) {
  const { list, typed, fault } = useStore(sources);
  const isEmpty = list.length === 0;
  const [only] = list.length === 1 ? list : [];
  return (
    <>
      {isEmpty ? null : <SourceList list={list} />}
      <div id="source-choice" class="source-choice">
        <label id="drop" class={`drop${isEmpty ? '' : ' compact'}${isOver ? ' over' : ''}`}>
          <input
            id="file"
            type="file"
            multiple
            accept="video/*,audio/*,.mkv,.ts,.m2ts"
            class="visually-hidden"
            onChange={({ currentTarget }) => {
              addFiles([...(currentTarget.files ?? [])]);
              currentTarget.value = '';
            }}
          />
          <Icon name="upload" />
          <span class="drop-main">
            {isEmpty ? 'Drop files here, or ' : 'Drop more files, or '}
            <span class="as-link">{isEmpty ? 'choose them' : 'choose'}</span>
          </span>
          {isEmpty ? (
            <span class="soft">Video or audio, one or many. Interrupted uploads resume.</span>
          ) : null}
        </label>
        {isEmpty ? <LeftOver /> : null}
        {isEmpty ? (
          <p class="or">
            <span>or</span>
          </p>
        ) : null}
        <AddressField typed={typed} isWrong={fault !== ''} />
      </div>
      <Fault text={fault || (only === undefined ? '' : onlyFault(only))} id="source-error" />
    </>
  );
}

function onlyFault(source: Source): string {
  const fault = faultOf(source);
  return source.upload?.phase === 'failed' && !isRefused(source)
    ? `${fault} Press “Retry” to resume.`
    : source.upload?.phase === 'waiting'
      ? ''
      : fault;
}

function LeftOver() {
  const [note] = useState(leftOverNote);
  return note === '' ? null : (
    <p id="left-over" class="note">
      {note}
    </p>
  );
}

function AddressField({ typed, isWrong }: { readonly typed: string; readonly isWrong: boolean }) {
  return (
    <div class="field">
      <label for="url">Video URL</label>
      <div class={typed.trim() === '' ? '' : 'one-line'}>
        <input
          id="url"
          type="url"
          inputMode="url"
          maxLength={2048}
          placeholder="https://example.com/talk.mp4"
          autocomplete="off"
          spellcheck={false}
          aria-describedby="source-error"
          aria-invalid={isWrong}
          value={typed}
          onInput={({ currentTarget }) => type(currentTarget.value)}
          onPaste={(event) => {
            const text = event.clipboardData?.getData('text') ?? '';
            // The field would make one line of several.
            if (text.trim().split(/\s+/).length < 2) return;
            event.preventDefault();
            addAddresses(text);
          }}
          onKeyDown={(event) => {
            // With nothing else chosen, Enter begins the job of this one.
            if (event.key !== 'Enter' || typed.trim() === '' || sources.get().list.length === 0) return;
            event.preventDefault();
            addAddresses(typed);
          }}
        />
        {typed.trim() === '' ? null : (
          <Button
            id="url-add"
            icon="new"
            onClick={() => {
              addAddresses(typed);
              document.getElementById('url')?.focus();
            }}
          >
            Add
          </Button>
        )}
      </div>
    </div>
  );
}

interface ListProps {
  readonly list: readonly Source[];
  /** They are becoming jobs. */
  readonly isBatch?: boolean;
}

/** All of them, with the whole progress above when there are several. */
export function SourceList({ list, isBatch = false }: ListProps) {
  const total = totalOf(list);
  const isTold = total.files > 1 && !(isBatch && total.uploaded === total.files);
  return (
    <>
      {isTold ? <TotalLine total={total} /> : null}
      <ul class="source-list" aria-label="Sources">
        {list.map((source) => (
          <SourceRow key={source.id} source={source} isOnly={!isBatch && list.length === 1} />
        ))}
      </ul>
    </>
  );
}

function TotalLine({ total: { files, uploaded, bytes, sentBytes, secondsLeft } }: { readonly total: Total }) {
  const left = uploaded === files || secondsLeft === undefined ? '' : ` · ${about(secondsLeft)} left`;
  return (
    <div id="upload-total" class="upload-total">
      <progress max={bytes} value={sentBytes} aria-label="Upload of all files" />
      <span class="soft">
        {uploaded} of {files} files uploaded · {size(sentBytes)} of {size(bytes)}
        {left}
      </span>
    </div>
  );
}
