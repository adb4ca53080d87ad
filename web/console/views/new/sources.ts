/** Where the sound comes from: files, which are uploaded as soon as they are chosen, addresses, and the upload of an earlier job. */
import type { Job } from 'soundpost-contract/job';
import { announce } from '../../announcements.ts';
import type { Wanted } from './choices.ts';
import { keepUnfinished } from './left-over.ts';
import { createStore } from './store.ts';
import { forgetUploads, NOT_BEGUN, startUpload, type Upload, type UploadState } from './upload.ts';

export interface Source {
  readonly id: number;
  /** Of the file, or the address. */
  readonly name: string;
  readonly file?: File;
  readonly upload?: UploadState;
  readonly url?: string;
  /** Names an upload that the service has had before. */
  readonly uploaded?: string;
  /** Why no job can be made of it; an upload has its own reason. */
  readonly fault: string;
  /** Whether it may help to submit it once more. */
  readonly mayTryAgain?: boolean;
  readonly jobId?: string;
  /** As told last. */
  readonly job?: Job;
}

interface Sources {
  readonly list: readonly Source[];
  /** What is typed in the field for an address. */
  readonly typed: string;
  /** What is wrong with what is typed, or that there is nothing at all. */
  readonly fault: string;
  /** What is to be made of several sources, once that was asked for; from then on each goes as soon as it is there. */
  readonly wanted?: Wanted;
  /** Why the service lets the others wait. */
  readonly pause: string;
}

const NONE: Sources = { list: [], typed: '', fault: '', pause: '' };
const EMPTY_FILE = 'The file is empty.';
const NO_FILE = 'This is a folder or an unreadable file. Choose the files in it.';

export const sources = createStore(NONE);
const uploads = new Map<number, Upload>();
let lastId = 0;

export const isReady = ({ url, uploaded, upload, fault, jobId }: Source): boolean =>
  fault === '' &&
  jobId === undefined &&
  (url !== undefined || uploaded !== undefined || upload?.phase === 'done');

/** Whether no job can be made of it, whatever is pressed. */
export const isRefused = ({ upload, fault, mayTryAgain }: Source): boolean =>
  (fault !== '' && mayTryAgain !== true) || upload?.phase === 'refused';

/** Whether it moves by itself: it will be ready, or not. */
const isComing = ({ upload, fault }: Source): boolean =>
  fault === '' &&
  upload !== undefined &&
  ['queued', 'starting', 'uploading', 'waiting'].includes(upload.phase);

export const faultOf = ({ upload, fault }: Source): string => fault || (upload?.fault ?? '');

/** How a job names it. */
export function sourceOfJob({ url, uploaded, upload }: Source) {
  if (url !== undefined) return { type: 'url' as const, url };
  return { type: 'upload' as const, file: uploaded ?? upload?.id ?? '' };
}

export function change(id: number, part: Partial<Source>): void {
  sources.set((state) => ({
    ...state,
    list: state.list.map((one) => (one.id === id ? { ...one, ...part } : one)),
  }));
}

export const type = (typed: string): void => sources.set((state) => ({ ...state, typed, fault: '' }));
export const sayFault = (fault: string): void => sources.set((state) => ({ ...state, fault }));

/** Every file gets its row, also one of which nothing will come. */
export function addFiles(files: readonly File[]): void {
  for (const file of files) {
    if (file.size === 0) add({ name: file.name, file, fault: EMPTY_FILE });
    else upload(add({ name: file.name, file, fault: '', upload: NOT_BEGUN }), file);
  }
  keepNames();
  if (files.length > 1) announce(`${files.length} files added`);
}

export const addUnreadable = (name: string): number => add({ name, fault: NO_FILE });

/** One address a line; what is none stays in the field, and is said. @returns whether all were taken */
export function addAddresses(text: string): boolean {
  const lines = text.split(/\s+/).filter((line) => line !== '');
  const wrong = lines.filter((line) => addressFault(line) !== '');
  for (const url of lines) if (addressFault(url) === '') add({ name: url, url, fault: '' });
  sources.set((state) => ({
    ...state,
    typed: wrong.join(' '),
    fault: wrong[0] === undefined ? '' : addressFault(wrong[0]),
  }));
  return wrong.length === 0;
}

/** Shows what another job came from, and nothing else. */
export function replaceBySourceOf({ source, inputFile }: Job): void {
  leaveAll();
  if (source.type === 'url') type(source.url ?? '');
  else
    add({
      name: inputFile?.name ?? source.name ?? source.file ?? '',
      uploaded: source.file ?? '',
      fault: '',
    });
}

export function addressFault(text: string): string {
  if (text === '') return 'Choose a file or paste a video URL.';
  return /^https?:\/\/[^\s/]+/i.test(text) ? '' : 'A URL starts with https:// or http://.';
}

export function pause(id: number): void {
  uploads.get(id)?.pause();
}

/** Resumes an upload, or submits once more what was not taken. */
export function tryAgain({ id, fault }: Source): void {
  if (fault === '') uploads.get(id)?.resume();
  else change(id, { fault: '', mayTryAgain: false });
}

export function remove(id: number): void {
  uploads.get(id)?.remove();
  drop(id);
}

/** A job has it now. */
export function letGo(id: number): void {
  uploads.get(id)?.leave();
  drop(id);
}

/** Nothing is told to the service: jobs may have the uploads. */
export function leaveAll(): void {
  for (const one of uploads.values()) one.leave();
  uploads.clear();
  sources.set(() => NONE);
  keepNames();
}

/** Nothing of them stays in this browser. */
export function eraseSources(): void {
  leaveAll();
  forgetUploads();
}

/** Waits until a source is ready. @returns it, or undefined when that will never be */
export function whenReady(id: number): Promise<Source | undefined> {
  const { promise, resolve } = Promise.withResolvers<Source | undefined>();
  const look = (): void => {
    const source = sources.get().list.find((one) => one.id === id);
    if (source !== undefined && !isReady(source) && !isRefused(source)) return;
    end();
    resolve(source !== undefined && isReady(source) ? source : undefined);
  };
  const end = sources.listen(look);
  look();
  return promise;
}

function add(source: Omit<Source, 'id'>): number {
  lastId += 1;
  const id = lastId;
  sources.set((state) => ({ ...state, fault: '', list: [...state.list, { id, ...source }] }));
  return id;
}

function upload(id: number, file: File): void {
  uploads.set(
    id,
    startUpload(file, (state) => {
      change(id, { upload: state });
      if (state.phase === 'done') tellDone(file.name);
    }),
  );
}

function tellDone(name: string): void {
  keepNames();
  const { list } = sources.get();
  const files = list.filter(({ upload }) => upload !== undefined);
  if (files.length === 1) announce(`${name} uploaded`);
  else if (!list.some(isComing)) announce(`${files.filter(isUploaded).length} files uploaded`);
}

const isUploaded = ({ upload }: Source): boolean => upload?.phase === 'done';

function drop(id: number): void {
  uploads.delete(id);
  sources.set((state) => ({ ...state, list: state.list.filter((one) => one.id !== id) }));
  keepNames();
}

function keepNames(): void {
  const unfinished = sources.get().list.filter((source) => source.upload && !isUploaded(source));
  keepUnfinished(unfinished.map(({ name }) => name));
}

/** Of all files that are, or can still be, uploaded. */
export interface Total {
  readonly files: number;
  readonly uploaded: number;
  readonly bytes: number;
  readonly sentBytes: number;
  /** Seconds; undefined while nothing is known. */
  readonly secondsLeft: number | undefined;
}

export function totalOf(list: readonly Source[]): Total {
  const counted = list.filter((source) => source.upload !== undefined && !isRefused(source));
  const sum = (of: (source: Source) => number): number =>
    counted.reduce((total, source) => total + of(source), 0);
  const bytes = sum(({ file }) => file?.size ?? 0);
  const sentBytes = sum(({ upload }) => upload?.sentBytes ?? 0);
  const perSecond = sum(({ upload }) => upload?.perSecond ?? 0);
  return {
    files: counted.length,
    uploaded: counted.filter(isUploaded).length,
    bytes,
    sentBytes,
    secondsLeft: perSecond > 0 ? (bytes - sentBytes) / perSecond : undefined,
  };
}
