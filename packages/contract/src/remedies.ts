/**
 * What helps against the failure of a job, by its cause: the remedy of its code alone would be
 * wrong for many. Console and command line say it.
 */

interface Cause {
  /** Of the details; where there are none, of the message. */
  readonly told: RegExp;
  readonly remedy: string;
  /** The same job would fail in the same way, although its code says that trying again may help. */
  readonly lasts?: true;
}

const ANOTHER_ADDRESS = 'Use the address of the file itself, or upload the file.';
const STREAM_AT_FAULT = 'The stream is broken. Use another stream or a file.';
const CONVERT = 'Convert the file with another program first, for example to MP4 with AAC, and upload that.';

/**
 * As the worker words them: packages/outbound/src, packages/media/src, packages/media/src/streams
 * and src/worker/steps. The first that matches counts.
 */
const causes: readonly Cause[] = [
  // DOWNLOAD_FAILED
  { told: /^the upload has expired/, remedy: 'Upload the file again and start a new job.', lasts: true },
  {
    told: /^HTTP 40[137]/,
    remedy:
      'The server requires a sign-in or a permission. Use an address that opens without one, or download the file yourself and upload it.',
  },
  {
    told: /^HTTP 4(04|10)/,
    remedy: 'There is no file at this address. Check it for missing letters, then try again.',
  },
  { told: /^HTTP 429/, remedy: 'The server received too many requests. Wait a few minutes, then try again.' },
  { told: /^HTTP 5/, remedy: 'The video’s server has a problem. Try again later.' },
  { told: /^HTTP/, remedy: `The server did not return the file. ${ANOTHER_ADDRESS}` },
  {
    told: /address (that )?is not allowed|names an address/,
    remedy:
      'Private addresses and unusual ports are not allowed. Use a public address, upload the file, or ask the operator to open the address (OUTBOUND_ALLOW).',
    lasts: true,
  },
  {
    told: /could not be reached/,
    remedy: 'Check the name in the address and that its server is running, then try again.',
  },
  {
    told: /no trusted TLS/,
    remedy:
      'The server’s certificate is not trusted. Tell its operator, or download the file yourself and upload it.',
  },
  {
    told: /connection broke|took too long|sends too slowly|resumed the file at another/,
    remedy:
      'The connection to the server was too slow or broke. Try again; if it keeps failing, download the file yourself and upload it.',
  },
  {
    told: /^the file is larger than allowed/,
    remedy: 'Use a smaller file: a shorter one, or one with only the audio.',
    lasts: true,
  },
  { told: /redirects more than/, remedy: `The address redirects too often. ${ANOTHER_ADDRESS}` },
  {
    told: /sends the file compressed|did not send the requested part|no longer sends|answer in valid HTTP/,
    remedy: `The server does not answer correctly. ${ANOTHER_ADDRESS}`,
  },
  // EXTRACTION_FAILED
  { told: /^no audio stream/, remedy: 'Choose another video: this one has no audio.' },
  { told: /^no audio track/, remedy: 'Start again with one of the tracks that it has.' },
  { told: /has no audio$/, remedy: 'This track is empty. Start again with another track or another video.' },
  {
    told: /between the requested start and end/,
    remedy: 'Start again with a part that has audio.',
  },
  {
    told: /^the output would exceed/,
    remedy: 'Start again with a shorter part, or with a format or quality that needs less space.',
  },
  {
    told: /^the audio changes its sample rate or channels/,
    remedy: 'Split the video, or convert its audio to one sample rate with another program.',
    lasts: true,
  },
  { told: /^flac supports at most/, remedy: 'Start again with another format, or with 1 or 2 channels.' },
  { told: / supports \d+k to \d+k/, remedy: 'Start again with a bitrate in this range, or without one.' },
  { told: /use only one audio track/, remedy: 'Start again with the same track in all outputs.' },
  { told: /cannot be processed|is not supported; choose/, remedy: CONVERT },
  // INVALID_VIDEO
  {
    told: /^the file is not in a known container|^the file is empty|not a media file/,
    remedy:
      'This is not video or audio. Choose another file; an address must lead to the file itself, not to a page that shows it.',
  },
  { told: /^no channel /, remedy: 'Choose one of the channels that it names, or all of them.' },
  { told: /must be decoded first/, remedy: 'Choose a shorter part, with a start and an end.' },
  {
    told: /^not supported: /,
    remedy: 'Convert the file with another program first, for example to FLAC, and upload that.',
  },
  {
    told: /is incomplete: (its last|it ends|none)|acceptTruncated/,
    remedy:
      'The end of the file is missing. Upload all of it, or, with the API, set acceptTruncated to use the rest.',
  },
  { told: /^the audio is longer than/, remedy: 'Split the video, and start a job for each part.' },
  {
    told: /corrupt or not supported|too many (streams|tags)|most of the audio could not be decoded/,
    remedy: 'Check that the file plays. If it does, convert it with another program and upload that.',
  },
  {
    told: /exceeded its time limit/,
    remedy: 'Check that the file plays to its end. If it does, start again with a shorter part.',
  },
  {
    told: /is a playlist, which does not contain/,
    remedy: 'Use the address of the playlist instead of the file.',
  },
  { told: /^live stream/, remedy: 'Wait until the stream has ended, then start again.' },
  { told: /^encrypted/, remedy: 'This video is copy-protected and cannot be read. Choose another one.' },
  { told: /playlist lists files/, remedy: 'Use the address of one of the files that it lists.' },
  { told: /^the description of the file or stream needs too much/, remedy: CONVERT },
  { told: /playlist|manifest|stream|segment|EXT-X|IV of a key|has no URI/, remedy: STREAM_AT_FAULT },
  // INTERNAL_ERROR
  {
    told: /ran out of disk space/,
    remedy: 'Tell the operator of the service that its disk is full, then try again.',
  },
  {
    told: /took too long$/,
    remedy: 'Try again. If it keeps failing, use a shorter part, or tell the operator of the service.',
  },
  {
    told: /workers were lost|every worker that started it/,
    remedy: 'Try again. If it keeps failing, tell the operator of the service the job’s id.',
  },
];

/** By code, where no cause above was told. */
const byCode: Readonly<Record<string, string>> = {
  DOWNLOAD_FAILED: 'Check that the address opens for everybody, then try again.',
  EXTRACTION_FAILED: 'Start again with another track, format or part.',
  INVALID_VIDEO: 'Check that the file plays, or use another copy of it.',
  JOB_CANCELLED: 'Try again if it was cancelled by mistake.',
  INTERNAL_ERROR: 'Try again. If it keeps failing, tell the operator of the service the job’s id.',
};

/** @param told the failure's details, or its message where it has none */
export function remedyOf(code: string, told: string): { remedy: string; lasts: boolean } {
  const cause = code === 'JOB_CANCELLED' ? undefined : causes.find((one) => one.told.test(told));
  return { remedy: cause?.remedy ?? byCode[code] ?? '', lasts: cause?.lasts ?? false };
}
