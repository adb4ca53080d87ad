/**
 * One file on its way to the service, by tus: it waits for its turn, can be paused, survives a broken connection, and goes on where it stopped when the
 * same file is chosen again after the page was reloaded.
 */
import type { DetailedError, HttpResponse, HttpStack, Upload as TusUpload } from 'tus-js-client';
import { keyId, reachable, sentence, sessionHeaders, signedInAgain } from '../../session.ts';
import { takeTurn } from './turns.ts';

/** Pauses between tries, ms; then somebody has to press a button. */
const RETRIES = [0, 500, 1000, 2000, 4000, 8000, 15_000, 15_000];
/** A service that wants a longer pause is asked again by a button. */
const LONGEST_WAIT_SECONDS = 30;
const REMEMBERED = 'tus::soundpost-';
/** Uploads are kept for a day, unless the operator chose otherwise; an expired one is begun anew. */
const REMEMBERED_MS = 48 * 3600 * 1000;
const SPEED_EVERY_MS = 500;
const NOT_LOADED = 'Part of this page did not load. Check your connection.';

type UploadPhase =
  | 'queued'
  | 'starting'
  | 'uploading'
  /** The connection is lost, and it tries by itself. */
  | 'waiting'
  | 'paused'
  /** Pressing a button may help. */
  | 'failed'
  /** The service will not have the file, however often it is sent. */
  | 'refused'
  | 'done';

export interface UploadState {
  readonly phase: UploadPhase;
  readonly sentBytes: number;
  /** Bytes; 0 while it is not known. */
  readonly perSecond: number;
  /** Bytes that an earlier upload had sent already. */
  readonly resumedAt: number;
  readonly fault: string;
  /** Names it in a job, once all of it is there. */
  readonly id?: string;
}

export const NOT_BEGUN: UploadState = {
  phase: 'queued',
  sentBytes: 0,
  perSecond: 0,
  resumedAt: 0,
  fault: '',
};

export interface Upload {
  pause(): void;
  resume(): void;
  /** Gives it up; what has arrived is removed from the service. */
  remove(): void;
  /** Ends it without a word to the service, as a reload of the page does. */
  leave(): void;
}

/** @param onState called at every change, until the upload is removed or left */
export function startUpload(file: File, onState: (state: UploadState) => void): Upload {
  let state = NOT_BEGUN;
  let tus: TusUpload | undefined;
  let giveTurnBack = (): void => undefined;
  let isOver = false;
  /** Counts beginnings: what an earlier one still does is not meant any more. */
  let beginning = 0;
  let measuring = { sentBytes: 0, atMs: 0 };
  let isContinued = false;

  function change(part: Partial<UploadState>): void {
    if (isOver) return;
    state = { ...state, ...part };
    onState(state);
  }

  function stop(part: Partial<UploadState>): void {
    beginning += 1;
    giveTurnBack();
    change({ perSecond: 0, ...part });
  }

  function resume(): void {
    giveTurnBack();
    change({ phase: 'queued', fault: '' });
    beginning += 1;
    const mine = beginning;
    // It may be its turn before the function that gives it back is known.
    queueMicrotask(() => {
      if (mine === beginning) giveTurnBack = takeTurn(() => void begin(mine));
    });
  }

  async function begin(mine: number): Promise<void> {
    change({ phase: 'starting' });
    try {
      tus ??= await open();
    } catch {
      if (mine === beginning) stop({ phase: 'failed', fault: NOT_LOADED });
      return;
    }
    if (mine !== beginning) return;
    measuring = { sentBytes: state.sentBytes, atMs: performance.now() };
    tus.start();
  }

  async function open(): Promise<TusUpload> {
    const { Upload: Tus, DefaultHttpStack } = await import('tus-js-client');
    forgetOld();
    const opened = new Tus(file, {
      endpoint: reachable('/v1/uploads'),
      httpStack: nearStack(new DefaultHttpStack({})),
      headers: sessionHeaders(),
      metadata: { filename: file.name, filetype: file.type },
      retryDelays: RETRIES,
      fingerprint: async () => fingerprintOf(file),
      onShouldRetry: (error) => {
        const mayHelp = mayPass(error);
        if (mayHelp && state.phase !== 'paused')
          change({ phase: 'waiting', perSecond: 0, fault: told(error) });
        return mayHelp;
      },
      onProgress: progressed,
      onError: (error) => {
        const { originalResponse = null } = error as Partial<DetailedError>;
        if (originalResponse?.getStatus() === 401) {
          stop({ phase: 'waiting' });
          void signedInAgain(faultOf(originalResponse)).then(() => state.phase === 'waiting' && resume());
          return;
        }
        stop({ phase: isRefusal(originalResponse) ? 'refused' : 'failed', fault: faultOf(originalResponse) });
      },
      onSuccess: () => {
        const id = opened.url?.split('/').at(-1) ?? '';
        stop({ phase: 'done', sentBytes: file.size, fault: '', id });
      },
    });
    const [earlier] = await opened.findPreviousUploads();
    if (earlier !== undefined) {
      isContinued = true;
      opened.resumeFromPreviousUpload(earlier);
    }
    return opened;
  }

  function progressed(sentBytes: number): void {
    if (state.phase === 'paused') return;
    const resumedAt = isContinued ? sentBytes : state.resumedAt;
    isContinued = false;
    const now = performance.now();
    const passedMs = now - measuring.atMs;
    let { perSecond } = state;
    if (passedMs > SPEED_EVERY_MS) {
      const measured = Math.max(0, ((sentBytes - measuring.sentBytes) / passedMs) * 1000);
      perSecond = perSecond === 0 ? measured : perSecond * 0.7 + measured * 0.3;
      measuring = { sentBytes, atMs: now };
    }
    change({ phase: 'uploading', sentBytes, perSecond, resumedAt, fault: '' });
  }

  function end(isToBeErased: boolean): void {
    stop({});
    isOver = true;
    void tus?.abort(isToBeErased).catch(() => undefined);
  }

  resume();
  return {
    resume,
    pause() {
      stop({ phase: 'paused' });
      void tus?.abort().catch(() => undefined);
    },
    // A job may have what is complete.
    remove: () => end(state.phase !== 'done'),
    leave: () => end(false),
  };
}

/** The service names uploads by its public address; this page may be reached by another one, and asks there. */
const nearStack = (stack: HttpStack): HttpStack => ({
  createRequest: (method, url) => stack.createRequest(method, reachable(url)),
  getName: () => 'NearStack',
});

/** The key is in it by its id alone: another key has other uploads. */
function fingerprintOf({ name, size, lastModified }: File): string {
  return `soundpost-${keyId()}-${size}-${lastModified}-${name}`;
}

/** Not what the request is to blame for, but for a lock that the broken try still holds, and a full minute. */
function isRefusal(response: HttpResponse | null): boolean {
  const status = response?.getStatus() ?? 0;
  return status !== 0 && status < 500 && ![408, 409, 423, 429, 460].includes(status);
}

function mayPass({ originalResponse }: DetailedError): boolean {
  const wait = Number(originalResponse?.getHeader('Retry-After') ?? 0);
  return !isRefusal(originalResponse) && !(wait > LONGEST_WAIT_SECONDS);
}

/** What the service says while it is asked again; nothing where it is not reached. */
const told = ({ originalResponse }: DetailedError): string =>
  originalResponse?.getStatus() === 429 ? faultOf(originalResponse) : '';

function faultOf(response: HttpResponse | null): string {
  if (response === null) return 'The connection was lost, and retrying failed.';
  try {
    return sentence(JSON.parse(response.getBody()).error);
  } catch {
    return sentence({});
  }
}

function forgetOld(): void {
  for (const key of remembered()) {
    const { creationTime } = JSON.parse(localStorage.getItem(key) ?? '{}');
    if (!(Date.parse(creationTime) > Date.now() - REMEMBERED_MS)) localStorage.removeItem(key);
  }
}

/** Leaves no trace in this browser of what was uploaded. */
export function forgetUploads(): void {
  for (const key of remembered()) localStorage.removeItem(key);
}

const remembered = (): string[] => Object.keys(localStorage).filter((key) => key.startsWith(REMEMBERED));
