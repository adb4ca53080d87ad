// Deliveries of all jobs that name a webhook, newest first, and a test of a receiver.
import { request } from './connection.js';
import { drawDeliveries } from './deliveries.js';
import { byId, during } from './page.js';
import { element, shortTime } from './shared/elements.js';
import { nameOf } from './words.js';

/** Jobs looked at for one page; most of them may name no webhook. */
const PAGE = 50;
const LOOK_MS = 3000;

const list = byId('webhook-jobs');
const fault = byId('webhooks-error');

let showing = null;
let looks = 0;
let cursor = null;

export function show() {
  showing = new AbortController();
  cursor = null;
  list.replaceChildren();
  byId('webhooks-empty').hidden = true;
  const { signal } = showing;
  void loadPage(signal).then(() => lookAgain(signal));
}

export function leave() {
  showing?.abort();
  clearTimeout(looks);
  fault.textContent = '';
}

byId('webhooks-more').addEventListener('click', () => void loadPage(showing.signal));

async function loadPage(signal) {
  try {
    fault.textContent = '';
    const query = new URLSearchParams({ limit: PAGE, ...(cursor === null ? {} : { cursor }) });
    const page = await request(`v1/jobs?${query}`, { signal });
    cursor = page.nextCursor;
    const told = page.jobs.filter(({ options }) => options.webhook !== undefined);
    const cards = told.map((job) => jobCard(job));
    // First what they hold, then the cards: nothing that is seen moves.
    await Promise.all(cards.map(({ tryLook }) => tryLook(signal)));
    list.append(...cards.map(({ node }) => node));
    byId('webhooks-empty').hidden = list.children.length > 0;
    byId('webhooks-more').hidden = cursor === null;
  } catch (error) {
    if (error.name !== 'AbortError') {
      fault.textContent = error.message;
    }
  }
}

function jobCard(job) {
  const deliveries = element('ul', { class: 'deliveries', 'aria-label': `Deliveries of ${nameOf(job)}` });
  const wrong = element('p', { class: 'fault', role: 'alert' });
  const node = element(
    'li',
    { class: 'card', 'data-job': job.jobId },
    element(
      'div',
      { class: 'card-head' },
      element('h2', {}, element('a', { href: `#/jobs/${job.jobId}`, textContent: nameOf(job) })),
      element('span', { class: 'soft', textContent: shortTime(new Date(job.createdAt)) }),
    ),
    element('p', { class: 'soft address', textContent: job.options.webhook }),
    deliveries,
    wrong,
  );
  const look = async (signal) => {
    const answer = await request(`v1/jobs/${job.jobId}/deliveries`, { signal });
    drawDeliveries(deliveries, job.jobId, answer.deliveries, wrong);
  };
  /** A job that was erased meanwhile, say, spoils its own card alone. */
  const tryLook = async (signal) => {
    try {
      await look(signal);
    } catch (error) {
      signal.throwIfAborted();
      wrong.textContent = error.message;
    }
  };
  node.look = look;
  return { node, tryLook };
}

/** The newest ones may still move. */
function lookAgain(signal) {
  if (signal.aborted) {
    return;
  }
  looks = setTimeout(async () => {
    await Promise.all([...list.children].slice(0, 10).map(({ look }) => look(signal).catch(() => undefined)));
    lookAgain(signal);
  }, LOOK_MS);
}

byId('test-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const result = byId('test-result');
  result.hidden = true;
  void during(event.submitter ?? byId('test-form').querySelector('button'), byId('test-error'), async () => {
    const { status, latencyMs } = await request('v1/webhooks/test', {
      method: 'POST',
      json: { url: byId('test-url').value.trim() },
    });
    result.textContent = `The receiver answered ${status} after ${latencyMs} ms.`;
    result.hidden = false;
  });
});
