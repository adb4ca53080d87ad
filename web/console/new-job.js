// The first view: a source, what is to be made of it, and off it goes.

import { chosenRequest, prepareChoices, showChoices } from './choices.js';
import { once } from './connection.js';
import { announce, byId, setText } from './page.js';
import { eraseSource, forgetSource, prepareSource, showSource, sourceOf, takeSource } from './source.js';
import * as trim from './trim.js';
import { GivenUp } from './upload.js';
import { outputsOf } from './words.js';

const form = byId('new-form');
const button = byId('extract');
const fault = byId('new-error');

/** What another view wants to be filled in when this one opens. */
let prefill = null;
/** Whether a job is on its way; leaving the view does not hold it up, but then nobody is taken to the job. */
let submitting = false;

export function show() {
  if (prefill !== null) {
    const { source, outputs, options } = prefill;
    prefill = null;
    showSource(source);
    showChoices(outputs, options);
    trim.showPart(outputs[0]);
  }
}

/** What was begun stays: coming back finds it. */
export function leave() {
  byId('source-error').textContent = '';
  fault.textContent = '';
}

/** Shows another job's source and choices the next time that the view opens, without its destination, whose address is for once. @param job as the API has it */
export function startFrom(job) {
  const { source, inputFile, options } = job;
  prefill = { source: { ...source, name: inputFile?.name ?? source.file }, outputs: outputsOf(job), options };
  location.hash = '#/';
}

/** When somebody signs out, nothing of theirs stays. */
export function forget() {
  eraseSource();
  form.reset();
  showChoices([{ format: 'mp3' }], {});
  trim.clear();
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  if (submitting) {
    return;
  }
  fault.textContent = '';
  if (!sourceOf() || trim.chosenPart() === null) {
    return;
  }
  setSubmitting(true);
  try {
    // A file may still be on its way, and the choices may change until it has arrived.
    const source = await takeSource(() => waitForUpload());
    note('');
    const part = trim.chosenPart();
    if (part === null) {
      return;
    }
    const wanted = chosenRequest(part);
    const { jobId } = await once('v1/extract', { source, ...wanted });
    forgetSource();
    trim.clear();
    form.reset();
    showChoices(outputsOf(wanted), {});
    if (byId('view-new').hidden) {
      announce('The job has begun; the history has it.');
    } else {
      location.hash = `#/jobs/${jobId}`;
    }
  } catch (error) {
    fault.textContent = error instanceof GivenUp ? '' : error.message;
  } finally {
    note('');
    setSubmitting(false);
  }
});

function setSubmitting(now) {
  submitting = now;
  button.setAttribute('aria-disabled', String(now));
  button.classList.toggle('busy', now);
}

function waitForUpload() {
  note('The job starts when the upload is complete.');
  announce('The job starts when the upload is complete.');
}

function note(text) {
  setText(byId('extract-note'), text);
}

prepareSource();
prepareChoices();
