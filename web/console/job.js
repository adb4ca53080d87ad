// One job: its progress while it runs, then its result, or why there is none.
import { follow, reachable, request, sentence } from './connection.js';
import { errors, processingSteps } from './contract.js';
import { showDeliveries, stopDeliveries } from './deliveries.js';
import { cancel, mayHelpToRetry, retry } from './job-actions.js';
import { startFrom } from './new-job.js';
import { announce, byId, confirmed, during, setText, showFacts } from './page.js';
import { closePlayer, loadPlayer } from './player.js';
import { closeSend, showSend } from './send.js';
import { element, icon } from './shared/elements.js';
import { closeTranscript, showTranscript } from './transcript.js';
import {
  about,
  destinationWord,
  nameOf,
  outputsOf,
  size,
  statusOf,
  statusWord,
  stepWord,
  time,
  until,
} from './words.js';

const fault = byId('job-error');

let watching = null;
/** The job that is shown, or null until it is known. */
let job = null;
/** What was said of the progress last. */
let saidStep = null;

export function show(jobId) {
  job = null;
  saidStep = null;
  watching = new AbortController();
  const { signal } = watching;
  byId('job-title').textContent = 'Job';
  byId('job-subtitle').textContent = jobId;
  byId('job-status').textContent = '';
  for (const part of [
    'job-progress',
    'job-failed',
    'job-result',
    'job-send',
    'job-details',
    'job-deliveries',
  ]) {
    byId(part).hidden = true;
  }
  follow(jobId, {
    signal,
    onJob: (now) => !signal.aborted && showJob(now),
    onLive: (live) => !signal.aborted && showLive(live),
  }).catch((error) => {
    if (!signal.aborted) {
      fault.textContent = error.message;
    }
  });
}

export function leave() {
  watching?.abort();
  closePlayer();
  closeTranscript();
  closeSend();
  stopDeliveries();
  fault.textContent = '';
}

function showLive(live) {
  setText(byId('progress-live'), live ? '' : 'Connection lost, trying again…');
  if (job === null) {
    // There is no progress yet to say it beside.
    setText(fault, live ? '' : 'The service does not answer, trying again…');
  }
}

function showJob(now) {
  const before = job === null ? null : statusOf(job);
  job = now;
  const status = statusOf(job);
  const name = nameOf(job);
  setText(byId('job-title'), name);
  document.title = `${status === 'processing' ? `${job.progress} % · ` : ''}${name} · Soundpost`;
  byId('job-status').className = `status status-${status}`;
  setText(byId('job-status'), statusWord(status));
  setText(byId('job-subtitle'), subtitleOf(job));
  showProgress(status);
  showFailure(status);
  showResult();
  showDetails(status);
  showSend(job, (changed) => showJob(changed));
  void showDeliveries(job);
  if (before !== null && before !== status) {
    announce(`${name}: ${statusWord(status)}`);
    // Whoever was on the button that has gone stays where the news is.
    if (document.activeElement === document.body) {
      byId('job-title').focus({ preventScroll: true });
    }
  }
}

function subtitleOf({ jobId, createdAt, retryOf }) {
  const at = new Date(createdAt).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
  return `${jobId} · ${at}${retryOf === null ? '' : ` · tries ${retryOf} again`}`;
}

function showProgress(status) {
  byId('job-progress').hidden = status !== 'queued' && status !== 'processing';
  const { progress, currentStep, estimatedTimeRemaining: left } = job;
  const levels = outputsOf(job).some((output) => output.normalize || output.loudness !== undefined);
  byId('progress-bar').value = progress;
  setText(byId('progress-percent'), `${progress} %`);
  setText(
    byId('progress-left'),
    status === 'queued' ? 'Waiting for its turn' : left === undefined ? '' : `${about(left)} left`,
  );
  const steps = processingSteps.filter((step) => step !== 'normalizing_audio' || levels);
  const at = steps.indexOf(currentStep);
  byId('steps').replaceChildren(...steps.map((step, index) => stepItem(step, index - at, at === -1)));
  if (currentStep !== null && currentStep !== saidStep && status === 'processing') {
    saidStep = currentStep;
    announce(stepWord(currentStep));
  }
}

/** @param {number} offset from the current step: below 0 is done */
function stepItem(step, offset, isWaiting) {
  const state = isWaiting || offset > 0 ? 'to-come' : offset === 0 ? 'current' : 'done';
  const item = element(
    'li',
    { class: `step step-${state}`, 'data-step': step },
    element('span', { class: 'step-sign', 'aria-hidden': 'true' }, state === 'done' ? icon('done') : ''),
    element('span', { textContent: stepWord(step) }),
  );
  if (state === 'current') {
    item.setAttribute('aria-current', 'step');
  }
  return item;
}

function showFailure(status) {
  byId('job-failed').hidden = job.error === undefined;
  if (job.error === undefined) {
    return;
  }
  const { code, message, details } = job.error;
  byId('job-retry').hidden = !mayHelpToRetry(job);
  byId('failed-title').textContent = status === 'cancelled' ? 'Cancelled' : 'This did not work';
  byId('failed-text').textContent = sentence({ message, details }, 200);
  byId('failed-remedy').textContent = errors[code]?.remedy ?? '';
  byId('failed-code').textContent = code;
}

function showResult() {
  const file = job.outputFile;
  const isThere = file?.url !== undefined;
  byId('job-result').hidden = !isThere;
  if (!isThere) {
    return;
  }
  loadPlayer(file, waveformOf(job));
  showTranscript(job, file);
  showOtherFiles(job.outputFiles.slice(1));
  setText(byId('result-expires'), until(file.expiresAt));
  byId('download').href = reachable(file.url);
  byId('download').download = file.filename;
  const { loudness } = file;
  showFacts(byId('facts'), [
    ['Format', `${file.format.toUpperCase()} · ${file.codec}`],
    ['Length', time(file.duration)],
    ['Size', size(file.size)],
    ['Bitrate', file.bitrate.replace('k', ' kbit/s')],
    ['Sound', `${channelWord(file.channels)} · ${file.sampleRate / 1000} kHz`],
    ['Loudness', loudness && `${loudness.outputLufs.toFixed(1)} LUFS, from ${loudness.inputLufs.toFixed(1)}`],
    ['Made by', file.copied ? 'copying the sound as it was' : 'encoding'],
  ]);
}

/** The file that draws what the first one sounds like: a waveform of the same part of the same track. */
function waveformOf(job) {
  const [first, ...others] = outputsOf(job);
  const clock = ({ format, timeline }) => timeline ?? (format === 'voice' ? 'audio' : 'source');
  const isOfFirst = (output) =>
    output.format === 'waveform' &&
    ['track', 'start', 'end'].every((field) => output[field] === first[field]) &&
    clock(output) === clock(first);
  const name = others.find(isOfFirst)?.name;
  return job.outputFiles.find((file) => file.name === name);
}

function showOtherFiles(files) {
  byId('other-files').hidden = files.length === 0;
  byId('other-files').replaceChildren(
    ...files.map((file) =>
      element(
        'li',
        {},
        element('a', { href: reachable(file.url), download: file.filename, textContent: file.filename }),
        ` · ${size(file.size)}`,
      ),
    ),
  );
}

const channelWord = (channels) => ({ 1: 'Mono', 2: 'Stereo' })[channels] ?? `${channels} channels`;

/** Only once it has ended: what stands below the progress would be moved by its result. */
function showDetails(status) {
  const isRunning = status === 'queued' || status === 'processing';
  byId('job-details').hidden = isRunning;
  const { source, inputFile, options } = job;
  const [output] = outputsOf(job);
  const part = [output.start ?? 0, output.end]
    .map((at) => (at === undefined ? 'the end' : time(at)))
    .join(' to ');
  showFacts(byId('details'), [
    ['Source', source.url ?? inputFile?.name ?? source.file],
    [
      'Source file',
      inputFile?.format && `${inputFile.format} · ${time(inputFile.duration)} · ${size(inputFile.size)}`,
    ],
    ['Audio tracks', inputFile?.tracks.map((track) => trackWord(track, inputFile.tracks)).join('; ')],
    ['Part', output.start === undefined && output.end === undefined ? null : part],
    ['Quality', output.quality ?? null],
    ['Track', output.track === undefined ? null : String(output.track)],
    ['Webhook', options.webhook ?? null],
    ...destinationFacts(job),
  ]);
}

/** Of each file that has one; of the job until there are files. */
function destinationFacts({ destination, outputFiles }) {
  const placed = outputFiles.filter((file) => file.destination);
  if (placed.length === 0) return [['Destination', destination ? destinationWord(destination) : null]];
  return placed.map((file) => [
    outputFiles.length > 1 ? `Destination of ${file.name}` : 'Destination',
    destinationWord(file.destination),
  ]);
}

/** Of several that are marked as default the first is taken. */
function trackWord(track, tracks) {
  const { index, codec, language, channels } = track;
  const isMain = track === (tracks.find((one) => one.default) ?? tracks[0]);
  return `${index}: ${[language, codec, channelWord(channels).toLowerCase(), isMain ? 'the main one' : null].filter(Boolean).join(', ')}`;
}

byId('job-cancel').addEventListener('click', (event) =>
  during(event.currentTarget, fault, async () => {
    const { signal } = watching;
    const now = await cancel(job.jobId);
    // Another one may be shown by now.
    if (!signal.aborted) {
      showJob(now);
    }
  }),
);

byId('job-retry').addEventListener('click', (event) =>
  during(event.currentTarget, fault, () => retry(job.jobId)),
);

byId('job-again').addEventListener('click', () => job !== null && startFrom(job));

byId('job-erase').addEventListener('click', (event) =>
  during(event.currentTarget, fault, async () => {
    // The one that is asked about, also when Back leads to another one meanwhile.
    const { jobId } = job;
    const sure = await confirmed({
      title: `Erase ${nameOf(job)}?`,
      text: 'The file is removed from the service, and its address no longer works. The job stays in the history.',
      yes: 'Erase it',
    });
    if (sure) {
      await request(`v1/jobs/${jobId}`, { method: 'DELETE' });
      announce('Erased');
      location.hash = '#/jobs';
    }
  }),
);
