// Jobs, newest first: looking for one, cancelling it, trying it again.
import { Away, request } from './connection.js';
import { cancel, mayHelpToRetry, retry } from './job-actions.js';
import { byId, during, iconButton, setText } from './page.js';
import { element, icon, shortTime } from './shared/elements.js';
import { nameOf, outputsOf, size, statusOf, statusWord, stepWord, time } from './words.js';

const PAGE = 20;
/** How often unfinished jobs are looked at while the list is open. */
const LOOK_MS = 2000;
const TYPING_MS = 250;

const fault = byId('history-error');
const list = byId('jobs');

let showing = null;
let looks = 0;
let typing = 0;
/** Shown jobs, newest first, and where the next page begins. */
let jobs = [];
let cursor = null;

export function show() {
  void load();
}

export function leave() {
  showing?.abort();
  showing = null;
  clearTimeout(looks);
  fault.textContent = '';
}

byId('history-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void load();
});
byId('search').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(load, TYPING_MS);
});
byId('status-filter').addEventListener('change', () => void load());
byId('history-more').addEventListener('click', () => {
  const first = jobs.length;
  void attempt(async () => {
    await loadPage(showing.signal, PAGE);
    draw();
    list.children[first]?.querySelector('a')?.focus();
  });
});

function query(more) {
  const wanted = { q: byId('search').value.trim(), status: byId('status-filter').value, ...more };
  return new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== '' && value !== null));
}

function load() {
  showing?.abort();
  showing = new AbortController();
  const { signal } = showing;
  clearTimeout(looks);
  return attempt(async () => {
    jobs = [];
    cursor = null;
    try {
      await loadPage(signal, PAGE);
    } catch (error) {
      if (error instanceof Away) {
        looks = setTimeout(load, LOOK_MS);
      }
      throw error;
    }
    draw();
    setText(byId('history-note'), jobs.length === 0 ? 'No jobs' : `${jobs.length} jobs shown`);
    lookAgain(signal);
  });
}

/** A page may hold fewer than were asked for, even none, although more follow. */
async function loadPage(signal, limit) {
  const found = [];
  do {
    const page = await request(`v1/jobs?${query({ limit, cursor })}`, { signal });
    found.push(...page.jobs);
    cursor = page.nextCursor;
  } while (found.length === 0 && cursor !== null);
  jobs = [...jobs, ...found];
}

async function attempt(work) {
  try {
    await work();
    fault.textContent = '';
  } catch (error) {
    if (error.name !== 'AbortError') {
      setText(fault, error.message);
    }
  }
}

/** Unfinished jobs move; what has ended stays as it is. */
function lookAgain(signal) {
  clearTimeout(looks);
  looks = setTimeout(async () => {
    const unfinished = jobs.filter(({ status }) => status === 'queued' || status === 'processing');
    // Nobody asked for it, so it neither says that it failed nor takes away what was said: it is done again.
    const found = await Promise.all(
      unfinished
        .slice(0, PAGE)
        .map(({ jobId }) => request(`v1/jobs/${jobId}`, { signal }).catch(() => undefined)),
    );
    found.filter((job) => job !== undefined).forEach(replace);
    if (!signal.aborted) {
      lookAgain(signal);
    }
  }, LOOK_MS);
}

function replace(job) {
  const at = jobs.findIndex(({ jobId }) => jobId === job.jobId);
  if (at !== -1 && JSON.stringify(jobs[at]) !== JSON.stringify(job)) {
    jobs[at] = job;
    const old = list.children[at];
    const focused = old.contains(document.activeElement) ? document.activeElement.dataset.part : undefined;
    old.replaceWith(row(job));
    if (focused !== undefined) {
      (
        list.children[at].querySelector(`[data-part="${focused}"]`) ?? list.children[at].querySelector('a')
      ).focus();
    }
  }
}

function draw() {
  list.replaceChildren(...jobs.map(row));
  const isSearch = byId('search').value.trim() !== '' || byId('status-filter').value !== '';
  byId('history-empty').hidden = jobs.length > 0;
  byId('history-empty-title').textContent = isSearch ? 'Nothing found' : 'Nothing here yet';
  byId('history-empty-text').textContent = isSearch
    ? 'No job matches. Try fewer letters, or all states.'
    : 'Your jobs will be listed here, with their results.';
  byId('history-more').hidden = cursor === null;
}

function row(job) {
  const status = statusOf(job);
  return element(
    'li',
    { class: 'row', 'data-job': job.jobId, 'data-status': status },
    element(
      'span',
      { class: `row-sign sign-${status}`, 'aria-hidden': 'true' },
      icon(signs[status] ?? 'history'),
    ),
    element(
      'div',
      { class: 'row-main' },
      element('a', { href: `#/jobs/${job.jobId}`, 'data-part': 'name', textContent: nameOf(job) }),
      element('p', { class: 'soft', textContent: about(job, status) }),
    ),
    element('span', { class: `status status-${status}`, textContent: statusWord(status) }),
    element('div', { class: 'row-actions' }, action(job, status)),
    status === 'processing' ? bar(job) : null,
  );
}

const signs = {
  completed: 'done',
  failed: 'close',
  cancelled: 'close',
  processing: 'usage',
  queued: 'history',
};

function about(job, status) {
  const what = {
    completed: () => `${time(Math.round(job.outputFile.duration))} · ${size(job.outputFile.size)}`,
    processing: () => `${stepWord(job.currentStep)} · ${job.progress} %`,
    failed: () => job.error.message,
  }[status]?.();
  const formats = outputsOf(job).map(({ format }) => format.toUpperCase());
  return [formats.join(', '), what, shortTime(new Date(job.createdAt))].filter(Boolean).join(' · ');
}

function bar({ progress, currentStep }) {
  return element('progress', { max: 100, value: progress, 'aria-label': stepWord(currentStep) });
}

function action(job, status) {
  if (status === 'queued' || status === 'processing') {
    const button = iconButton('close', 'Cancel', {
      class: 'small',
      'data-part': 'action',
      'aria-label': `Cancel ${nameOf(job)}`,
    });
    button.addEventListener('click', () =>
      during(button, fault, async () => replace(await cancel(job.jobId))),
    );
    return button;
  }
  if (status === 'completed' || !mayHelpToRetry(job)) {
    return null;
  }
  const button = iconButton('retry', 'Try again', {
    class: 'small',
    'data-part': 'action',
    'aria-label': `Try again: ${nameOf(job)}`,
  });
  button.addEventListener('click', () => during(button, fault, () => retry(job.jobId)));
  return button;
}
