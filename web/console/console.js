// The console: signs in, and shows the view that the address names.
import * as connection from './connection.js';
import * as history from './history.js';
import * as job from './job.js';
import * as newJob from './new-job.js';
import { byId } from './page.js';
import { forgetSend } from './send.js';
import { askForKey, begin } from './sign-in.js';
import * as usage from './usage.js';
import * as webhooks from './webhooks.js';
import './theme.js';

const TITLE = 'Soundpost';

/** By name. `show` is called when the view opens, `leave` when another one does. */
const views = {
  new: { module: newJob, title: 'New extraction' },
  history: { module: history, title: 'History' },
  job: { module: job, title: 'Job' },
  webhooks: { module: webhooks, title: 'Webhooks' },
  usage: { module: usage, title: 'Usage' },
};

let current = '';

/** `#/jobs/job_…` → the view and what it is about. */
function addressed() {
  const [, name = '', id] = location.hash.split('/');
  if (name === 'jobs') {
    return id === undefined || id === '' ? { view: 'history' } : { view: 'job', id };
  }
  return { view: Object.hasOwn(views, name) && name !== 'job' ? name : 'new' };
}

/** @param {boolean} byHand whether somebody went there: then what reads the page aloud goes along */
function open(byHand) {
  if (!connection.isSignedIn()) {
    return;
  }
  const { view, id } = addressed();
  views[current]?.module.leave();
  current = view;
  for (const name of Object.keys(views)) {
    byId(`view-${name}`).hidden = name !== view;
  }
  for (const link of document.querySelectorAll('.views a')) {
    const isHere = link.dataset.view === (view === 'job' ? 'history' : view);
    link.toggleAttribute('aria-current', isHere);
    if (isHere) {
      link.setAttribute('aria-current', 'page');
    }
  }
  document.title = `${views[view].title} · ${TITLE}`;
  views[view].module.show(id);
  if (byHand) {
    scrollTo(0, 0);
    byId(`${view}-title`).focus({ preventScroll: true });
  }
}

addEventListener('hashchange', () => open(true));

byId('skip').addEventListener('click', (event) => {
  // The part of the address after # names the view, so it cannot name a place in it.
  event.preventDefault();
  byId('content').focus();
});

connection.whenKeyIsRefused((reason) => {
  if (!byId('app').hidden) {
    close(reason.message);
  }
});

byId('sign-out').addEventListener('click', () => {
  newJob.forget();
  forgetSend();
  close('');
});

function close(fault) {
  views[current]?.module.leave();
  current = '';
  askForKey(fault);
}

begin({
  onSignedIn(byHand) {
    byId('sign-in').hidden = true;
    byId('app').hidden = false;
    open(byHand);
  },
});
