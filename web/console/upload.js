// One file on its way to the service, by tus: it can be paused, survives a broken connection, and goes on where it stopped when the same file is
// chosen again after the page was reloaded.
import './lib/tus.js';
import { keyHeaders, reachable, sentence } from './connection.js';

const { tus } = window;

/** Pauses between tries, ms; then somebody has to press a button. */
const RETRIES = [0, 500, 1000, 2000, 4000, 8000, 15_000, 15_000];
const REMEMBERED = 'tus::soundpost-';
/** Uploads are kept for a day, unless the operator chose otherwise; an expired one is begun anew. */
const REMEMBERED_MS = 48 * 3600 * 1000;

/** Nothing will come of it: the file was taken away, or the service does not want it. */
export class GivenUp extends Error {}

export class Upload {
  #tus;
  #listener;
  #sent = 0;
  /** Bytes and time at which the speed was measured last. */
  #mark = { sent: 0, atMs: 0, perSecond: 0 };
  /** Until the first bytes are counted: whether there was an earlier upload of the file. */
  #isContinued = false;
  #done = Promise.withResolvers();
  state = 'starting';
  fault = '';
  /** Whether the service will not have the file, however often it is sent. */
  isRefused = false;
  /** Bytes that an earlier upload had sent already. */
  resumedAt = 0;

  /** @param {File} file @param {(upload: Upload) => void} listener called at every change */
  constructor(file, listener) {
    this.file = file;
    this.#listener = listener;
    // Who waits for it hears of a failure from `state` too.
    this.#done.promise.catch(() => undefined);
    this.#tus = new tus.Upload(file, {
      endpoint: reachable('/v1/uploads'),
      httpStack: new NearStack(),
      headers: keyHeaders(),
      metadata: { filename: file.name, filetype: file.type },
      retryDelays: RETRIES,
      fingerprint: async () => fingerprintOf(file),
      onShouldRetry: (error) => this.#shouldRetry(error),
      onProgress: (sent) => this.#progressed(sent),
      onError: (error) => this.#failed(error),
      onSuccess: () => this.#succeeded(),
    });
    void this.#begin();
  }

  get sentBytes() {
    return this.#sent;
  }

  /** Seconds, or null while nothing is known. */
  get secondsLeft() {
    const { perSecond } = this.#mark;
    return perSecond > 0 ? (this.file.size - this.#sent) / perSecond : null;
  }

  /** Resolves with the id of the upload once all of it is there. Rejects with {@link GivenUp}. */
  get done() {
    return this.#done.promise;
  }

  async pause() {
    this.#change('paused');
    await this.#tus.abort();
  }

  resume() {
    this.fault = '';
    this.#mark = { sent: this.#sent, atMs: performance.now(), perSecond: 0 };
    this.#change('uploading');
    this.#tus.start();
  }

  /** Gives it up; what has arrived is removed from the service. */
  async remove() {
    this.#listener = () => undefined;
    this.#done.reject(new GivenUp());
    await this.#tus.abort(this.state !== 'done').catch(() => undefined);
  }

  /** Ends it without a word to the service, as a reload of the page does. Who waits for it hears {@link GivenUp}. */
  async leave() {
    this.#listener = () => undefined;
    this.#done.reject(new GivenUp());
    await this.#tus.abort().catch(() => undefined);
  }

  async #begin() {
    forgetOld();
    const [earlier] = await this.#tus.findPreviousUploads();
    if (earlier !== undefined) {
      this.#isContinued = true;
      this.#tus.resumeFromPreviousUpload(earlier);
    }
    this.resume();
  }

  #progressed(sent) {
    const now = performance.now();
    if (this.#isContinued) {
      this.#isContinued = false;
      this.resumedAt = sent;
    }
    this.#sent = sent;
    const { sent: before, atMs, perSecond } = this.#mark;
    if (now - atMs > 500) {
      const measured = Math.max(0, ((sent - before) / (now - atMs)) * 1000);
      this.#mark = {
        sent,
        atMs: now,
        perSecond: perSecond === 0 ? measured : perSecond * 0.7 + measured * 0.3,
      };
    }
    if (this.state === 'waiting') {
      this.state = 'uploading';
    }
    this.#listener(this);
  }

  #shouldRetry(error) {
    const status = error.originalResponse?.getStatus() ?? 0;
    // Not what the request is to blame for, but for a lock that the broken try still holds, and a full minute.
    const mayHelp = status === 0 || status >= 500 || [408, 409, 423, 429, 460].includes(status);
    this.isRefused = !mayHelp;
    if (mayHelp) {
      this.#change('waiting');
    }
    return mayHelp;
  }

  #failed(error) {
    this.fault = faultOf(error.originalResponse);
    this.#change('failed');
    if (this.isRefused) {
      this.#done.reject(new GivenUp());
    }
  }

  #succeeded() {
    this.#sent = this.file.size;
    this.#change('done');
    this.#done.resolve(this.#tus.url.split('/').at(-1));
  }

  #change(state) {
    this.state = state;
    this.#listener(this);
  }
}

/** The service names uploads by its public address; this page may be reached by another one, and asks there. */
class NearStack extends tus.DefaultHttpStack {
  createRequest(method, url) {
    return super.createRequest(method, reachable(url));
  }
}

/** The key is in it by its id alone: another key has other uploads. */
function fingerprintOf({ name, size, lastModified }) {
  const [, keyId = ''] = keyHeaders()['X-API-Key'].split('_');
  return `soundpost-${keyId}-${size}-${lastModified}-${name}`;
}

/** @param response of tus, which is missing where none came */
function faultOf(response) {
  if (!response) {
    return 'The connection broke, and trying again did not help.';
  }
  try {
    return sentence(JSON.parse(response.getBody()).error, response.getStatus());
  } catch {
    return sentence({}, response.getStatus());
  }
}

function forgetOld() {
  for (const key of remembered()) {
    const { creationTime } = JSON.parse(localStorage.getItem(key) ?? '{}');
    if (!(Date.parse(creationTime) > Date.now() - REMEMBERED_MS)) {
      localStorage.removeItem(key);
    }
  }
}

/** Leaves no trace of what was uploaded in this browser. */
export function forgetUploads() {
  for (const key of remembered()) {
    localStorage.removeItem(key);
  }
}

function remembered() {
  return Object.keys(localStorage).filter((key) => key.startsWith(REMEMBERED));
}
