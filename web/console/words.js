// What the API says in words of its own, in words for people.

const statuses = {
  queued: 'Waiting',
  processing: 'Working',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

const steps = {
  downloading_video: 'Fetching the video',
  analyzing_video: 'Looking into it',
  extracting_audio: 'Extracting the audio',
  normalizing_audio: 'Levelling the loudness',
  finalizing: 'Finishing',
};

const voiceStatuses = {
  pending: 'Waiting',
  sending: 'Sending',
  sent: 'Sent',
  failed: 'Not sent',
  unknown: 'Unknown',
};
const messageStatuses = { DELIVERY_ACK: 'Delivered', READ: 'Read', PLAYED: 'Played', ERROR: 'Not delivered' };

/** A cancelled job is a failed one to the API, but not to who has cancelled it. */
export function statusOf(job) {
  return job.error?.code === 'JOB_CANCELLED' ? 'cancelled' : job.status;
}

export const statusWord = (status) => statuses[status] ?? status;
export const stepWord = (step) => steps[step] ?? step;
export const voiceWord = ({ status, messageStatus }) =>
  (status === 'sent' ? messageStatuses[messageStatus] : undefined) ?? voiceStatuses[status] ?? status;

const destinationStatuses = {
  pending: 'Waiting, or on its way',
  completed: 'Delivered',
  failed: 'Not delivered',
};
/** `Delivered · https://bucket.example/talk.mp3`, or why not. */
export const destinationWord = ({ url, status, error }) =>
  [destinationStatuses[status] ?? status, error?.message ?? url].join(' · ');

/** What a job makes, in order: it was asked for one output or for several. */
export const outputsOf = ({ output, outputs = [output] }) => outputs;

/** What the job is about: the chosen name, the file, or the end of the address. */
export function nameOf(job) {
  const address = job.source.url?.split('/').filter(Boolean).at(-1);
  return job.outputFile?.filename ?? job.options.filename ?? job.inputFile?.name ?? address ?? job.jobId;
}

/** 1536 → `1.5 KB`, in powers of 1000 */
export function size(bytes) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${value.toFixed(power === 0 || value >= 100 ? 0 : 1)} ${units[power]}`;
}

/** 75.25 → `1:15.3`; an hour has its own place */
export function time(seconds) {
  const tenths = Math.round(seconds * 10);
  const whole = Math.floor(tenths / 10);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = String(whole % 60).padStart(2, '0');
  const fraction = tenths % 10 === 0 ? '' : `.${tenths % 10}`;
  return `${hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}` : minutes}:${rest}${fraction}`;
}

/** `75`, `1:15` or `1:02:03.5` as seconds; undefined for an empty text, NaN for what is no time. */
export function parseTime(text) {
  const trimmed = text.trim().replace(',', '.');
  if (trimmed === '') {
    return undefined;
  }
  if (!/^(\d+:){0,2}\d+(\.\d+)?$/.test(trimmed)) {
    return Number.NaN;
  }
  return trimmed.split(':').reduce((total, part) => total * 60 + Number(part), 0);
}

/** 130 → `about 2 min` */
export function about(seconds) {
  if (seconds < 60) {
    return `about ${Math.max(1, Math.round(seconds))} s`;
  }
  return seconds < 5400 ? `about ${Math.round(seconds / 60)} min` : `about ${Math.round(seconds / 3600)} h`;
}

/** How long until a time. @param {string} iso */
export function until(iso) {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  if (seconds <= 0) {
    return 'expired';
  }
  return about(seconds).replace('about', 'expires in about');
}
