// Where the sound comes from: a file, which is uploaded as soon as it is chosen, an address, or the upload of an earlier job.
import { announce, byId, setText } from './page.js';
import * as trim from './trim.js';
import { forgetUploads, Upload } from './upload.js';
import { about, size } from './words.js';

/** In this tab: the name of a file whose upload has not ended, for who reloads the page in the middle of it. */
const UNFINISHED = 'soundpost.console.upload';

const fault = byId('source-error');
const url = byId('url');
const pause = byId('upload-pause');

/** The upload of the chosen file, or null. */
let upload = null;
/** An upload that the service has already: its source as a job names it, or null. */
let uploaded = null;

export function prepareSource() {
  const drop = byId('drop');
  byId('file').addEventListener('change', (event) => {
    const [file] = event.target.files;
    if (file !== undefined) {
      take(file);
    }
  });
  // Anywhere on the page: who misses the field would otherwise leave the page for the file.
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) {
      return;
    }
    event.preventDefault();
    drop.classList.add('over');
  });
  addEventListener('dragleave', (event) => drop.classList.toggle('over', event.relatedTarget !== null));
  addEventListener('drop', (event) => {
    if (!hasFiles(event)) {
      return;
    }
    event.preventDefault();
    drop.classList.remove('over');
    const [file] = event.dataTransfer?.files ?? [];
    if (file !== undefined && upload === null && uploaded === null && !byId('view-new').hidden) {
      take(file);
    }
  });
  url.addEventListener('input', () => {
    fault.textContent = '';
    url.removeAttribute('aria-invalid');
  });
  pause.addEventListener('click', () => {
    if (upload?.state === 'paused' || upload?.state === 'failed') {
      upload.resume();
    } else {
      void upload?.pause();
    }
  });
  byId('chosen-remove').addEventListener('click', () => {
    void upload?.remove();
    showChoice();
    trim.clear();
    byId('file').focus();
  });
  const leftOver = sessionStorage.getItem(UNFINISHED);
  if (leftOver !== null) {
    byId('left-over').textContent =
      `The upload of ${leftOver} was interrupted. Choose the same file again, and it goes on where it stopped.`;
    byId('left-over').hidden = false;
  }
}

/** Fills in what another job came from. @param {{ type: string, url?: string, file?: string, name?: string }} source */
export function showSource(source) {
  void upload?.leave();
  showChoice();
  trim.clear();
  if (source.type === 'url') {
    url.value = source.url ?? '';
    return;
  }
  uploaded = { type: 'upload', file: source.file };
  showChosen(source.name ?? source.file, 'uploaded before');
  byId('upload').hidden = true;
}

/** Whether there is a source; where there is none, it is said and the field is brought forward. */
export function sourceOf() {
  if (upload?.state === 'failed') {
    showUpload(upload);
    byId(upload.isRefused ? 'chosen-remove' : 'upload-pause').focus();
    return false;
  }
  if (upload !== null || uploaded !== null) {
    return true;
  }
  fault.textContent = faultOf(url.value.trim());
  url.setAttribute('aria-invalid', String(fault.textContent !== ''));
  if (fault.textContent !== '') {
    url.focus();
  }
  return fault.textContent === '';
}

/** The source as a job names it; waits for the end of an upload. @param {() => void} onWait called where it has to */
export async function takeSource(onWait) {
  if (uploaded !== null) {
    return uploaded;
  }
  if (upload === null) {
    return { type: 'url', url: url.value.trim() };
  }
  if (upload.state !== 'done') {
    onWait();
  }
  return { type: 'upload', file: await upload.done };
}

/** The job has it now. */
export function forgetSource() {
  void upload?.leave();
  showChoice();
}

/** Nothing of it stays in this browser. */
export function eraseSource() {
  forgetSource();
  forgetUploads();
}

function faultOf(text) {
  if (text === '') {
    return 'Choose a file, or paste the address of a video.';
  }
  return /^https?:\/\/[^\s/]+/i.test(text) ? '' : 'An address begins with https:// or http://.';
}

function take(file) {
  fault.textContent = '';
  url.value = '';
  sessionStorage.setItem(UNFINISHED, file.name);
  upload = new Upload(file, showUpload);
  showChosen(file.name, size(file.size));
  byId('upload').hidden = false;
  trim.drawFile(file);
  byId('chosen-remove').focus();
}

function showChosen(name, about) {
  byId('source-choice').hidden = true;
  byId('left-over').hidden = true;
  byId('chosen').hidden = false;
  byId('chosen-name').textContent = name;
  byId('chosen-size').textContent = about;
}

function showChoice() {
  upload = null;
  uploaded = null;
  sessionStorage.removeItem(UNFINISHED);
  byId('file').value = '';
  url.value = '';
  byId('chosen').hidden = true;
  byId('source-choice').hidden = false;
}

/** A text that is dragged belongs into the field where it is dropped. */
const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files') ?? false;

const PAUSE_WORDS = { paused: 'Resume', failed: 'Try again' };

/** @param {Upload} one that has changed */
function showUpload(one) {
  if (one !== upload) {
    return;
  }
  const { state, file, sentBytes } = one;
  const percent = file.size === 0 ? 100 : Math.floor((sentBytes / file.size) * 100);
  byId('upload-bar').value = percent;
  byId('upload').dataset.state = state;
  byId('upload').dataset.resumedAt = String(one.resumedAt);
  setText(byId('upload-text'), textOf(one, percent));
  setText(pause, PAUSE_WORDS[state] ?? 'Pause');
  // Kept in its place, so that nothing moves.
  pause.classList.toggle('gone', state === 'done' || one.isRefused);
  const again = one.isRefused ? '' : ' Press “Try again”, and it goes on where it stopped.';
  setText(fault, state === 'failed' ? `${one.fault}${again}` : '');
  if (state === 'done') {
    sessionStorage.removeItem(UNFINISHED);
    announce(`${file.name} is uploaded`);
  }
}

function textOf({ state, secondsLeft, resumedAt, isRefused }, percent) {
  switch (state) {
    case 'done':
      return 'Uploaded';
    case 'paused':
      return `Paused at ${percent} %`;
    case 'waiting':
      return `${percent} % · connection lost, trying again…`;
    case 'failed':
      return isRefused ? 'Not uploaded' : `Stopped at ${percent} %`;
    case 'starting':
      return 'Beginning…';
    default: {
      const left = secondsLeft === null ? '' : ` · ${about(secondsLeft)} left`;
      return `${percent} %${left}${resumedAt > 0 ? ' · goes on where it stopped' : ''}`;
    }
  }
}
