// What the key used and may use.
import { request } from './connection.js';
import { byId, showFacts } from './page.js';
import { element } from './shared/elements.js';

const LOOK_MS = 5000;
const fault = byId('usage-error');

let showing = null;
let looks = 0;

export function show() {
  showing = new AbortController();
  void look(showing.signal);
}

export function leave() {
  showing?.abort();
  clearTimeout(looks);
}

async function look(signal) {
  try {
    draw(await request('v1/usage', { signal }));
    fault.textContent = '';
  } catch (error) {
    if (signal.aborted) {
      return;
    }
    fault.textContent = error.message;
  }
  looks = setTimeout(look, LOOK_MS, signal);
}

function draw({ key, submissions, reads, unfinishedJobs }) {
  byId('meters').replaceChildren(
    meter(
      'Submissions this minute',
      submissions.limit - submissions.remaining,
      submissions.limit,
      perMinute(submissions),
    ),
    meter('Requests this minute', reads.limit - reads.remaining, reads.limit, perMinute(reads)),
    meter('Unfinished jobs', unfinishedJobs.used, unfinishedJobs.limit, 'at a time'),
  );
  byId('key-card').hidden = false;
  const all = key.instances.includes('*');
  showFacts(byId('key-facts'), [
    ['Name', key.name],
    ['Id', key.id],
    ['May', key.scopes.join(', ')],
    ['Instances', all ? 'all' : key.instances.join(', ') || 'none'],
  ]);
}

function perMinute({ resetSeconds }) {
  return resetSeconds > 0 ? `the whole allowance again in ${resetSeconds} s` : 'the whole allowance is left';
}

function meter(name, used, limit, about) {
  const id = `meter-${name.toLowerCase().replaceAll(' ', '-')}`;
  return element(
    'section',
    { class: 'card meter', 'aria-labelledby': id },
    element('h2', { id, textContent: name }),
    element(
      'p',
      { class: 'meter-number' },
      element('strong', { textContent: used.toLocaleString() }),
      ` of ${limit.toLocaleString()}`,
    ),
    element('progress', { max: limit, value: used, 'aria-labelledby': id }),
    element('p', { class: 'hint', textContent: about }),
  );
}
