// What was sent to the webhook of a job, each try of it, and sending it again.
import { request } from './connection.js';
import { announce, byId, iconButton, setText } from './page.js';
import { element, shortTime } from './shared/elements.js';

const LOOK_MS = 2000;
const WORDS = { pending: 'On its way', delivered: 'Delivered', failed: 'Given up' };
const STATES = { pending: 'processing', delivered: 'completed', failed: 'failed' };

let looks = 0;
let of = null;

/** Shows the deliveries of the job in its own view, for as long as it is open. */
export async function showDeliveries({ jobId, options, finishedAt }) {
  const isTold = options.webhook !== undefined && finishedAt !== null;
  byId('job-deliveries').hidden = !isTold;
  if (!isTold || of === jobId) {
    return;
  }
  of = jobId;
  byId('deliveries-away').textContent = '';
  byId('deliveries-error').textContent = '';
  await look(jobId);
}

export function stopDeliveries() {
  clearTimeout(looks);
  of = null;
}

async function look(jobId) {
  clearTimeout(looks);
  try {
    const { deliveries } = await request(`v1/jobs/${jobId}/deliveries`);
    if (of === jobId) {
      byId('deliveries-away').textContent = '';
      drawDeliveries(byId('deliveries'), jobId, deliveries, byId('deliveries-error'));
    }
  } catch (error) {
    if (of === jobId) {
      setText(byId('deliveries-away'), error.message);
    }
  }
  if (of === jobId) {
    looks = setTimeout(look, LOOK_MS, jobId);
  }
}

/** @param {HTMLElement} list that is filled @param {HTMLElement} fault where it is said that a replay failed */
export function drawDeliveries(list, jobId, deliveries, fault) {
  const drawn = JSON.stringify(deliveries);
  if (list.dataset.drawn === drawn && list.dataset.job === jobId) {
    return;
  }
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.delivery : undefined;
  list.dataset.drawn = drawn;
  list.dataset.job = jobId;
  list.replaceChildren(
    ...(deliveries.length === 0
      ? [
          element('li', {
            class: 'soft',
            textContent: 'Nothing was sent yet: the webhook hears when the job has ended.',
          }),
        ]
      : deliveries.map((delivery) => deliveryItem(delivery, { list, jobId, fault }))),
  );
  if (focused !== undefined) {
    list.querySelector(`[data-delivery="${focused}"]`)?.focus();
  }
}

function deliveryItem({ deliveryId, event, status, nextAttemptAt, attempts }, { list, jobId, fault }) {
  const replay = iconButton('retry', 'Replay', {
    class: 'small',
    'data-delivery': deliveryId,
    'aria-label': `Replay ${event}`,
  });
  // Pressed twice it would be sent twice; the button stays where it is, so that the focus does too.
  replay.addEventListener('click', async () => {
    if (replay.getAttribute('aria-disabled') === 'true') {
      return;
    }
    replay.setAttribute('aria-disabled', 'true');
    fault.textContent = '';
    try {
      const answer = await request(`v1/jobs/${jobId}/deliveries/${deliveryId}/replay`, { method: 'POST' });
      announce(`${event} is sent again`);
      drawDeliveries(list, jobId, answer.deliveries, fault);
    } catch (error) {
      fault.textContent = error.message;
    }
    replay.removeAttribute('aria-disabled');
  });
  return element(
    'li',
    { class: 'delivery', 'data-status': status },
    element(
      'div',
      { class: 'delivery-head' },
      element('code', { textContent: event }),
      element('span', { class: `status status-${STATES[status]}`, textContent: WORDS[status] }),
      replay,
    ),
    element('ol', { class: 'attempts', 'aria-label': `Tries of ${event}` }, ...attempts.map(attemptItem)),
    nextAttemptAt === null
      ? null
      : element('p', { class: 'hint', textContent: `Next try at ${shortTime(new Date(nextAttemptAt))}` }),
  );
}

function attemptItem({ at, httpStatus, latencyMs, error }) {
  const good = httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
  return element(
    'li',
    { class: good ? 'good' : 'bad' },
    element('strong', { textContent: httpStatus === null ? 'No answer' : String(httpStatus) }),
    element('span', {
      class: 'soft',
      textContent: `${shortTime(new Date(at))} · ${latencyMs} ms${error === null ? '' : ` · ${error}`}`,
    }),
  );
}
