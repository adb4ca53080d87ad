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

const ANOTHER_ADDRESS = 'Give the address of the file itself, or upload the file.';
const STREAM_AT_FAULT =
  'The stream is at fault. Give the address of another stream or of a file, or upload the file.';

/**
 * As the worker words them: packages/outbound/src, packages/media/src, packages/media/src/streams
 * and src/worker/steps. The first that matches counts.
 */
const causes: readonly Cause[] = [
  // DOWNLOAD_FAILED
  { told: /^the upload has expired/, remedy: 'Upload the file again and begin a new job.', lasts: true },
  {
    told: /^HTTP 40[137]/,
    remedy:
      'The server wants a sign-in or a permission. Give an address that opens without one, or download the file yourself and upload it.',
  },
  {
    told: /^HTTP 4(04|10)/,
    remedy: 'There is no file at the address. Check it for missing letters, then try again.',
  },
  { told: /^HTTP 429/, remedy: 'The server wants fewer requests. Wait a few minutes, then try again.' },
  { told: /^HTTP 5/, remedy: 'The server of the video has trouble. Try again later.' },
  { told: /^HTTP/, remedy: `The server did not give the file. ${ANOTHER_ADDRESS}` },
  {
    told: /address (that )?is not allowed|names an address/,
    remedy:
      'Addresses in private networks and unusual ports are closed. Give a public address, or upload the file. The operator of the service can open an address (OUTBOUND_ALLOW).',
    lasts: true,
  },
  {
    told: /could not be reached/,
    remedy: 'Check the name in the address and that its server is up, then try again.',
  },
  {
    told: /no trusted TLS/,
    remedy:
      'The certificate of the server is not trusted. Tell its operator, or download the file yourself and upload it.',
  },
  {
    told: /connection broke|took too long|sends too slowly|continued the file at another place/,
    remedy:
      'The way to the server was too slow or broke. Try again; if it happens again, download the file yourself and upload it.',
  },
  {
    told: /^the file is larger than allowed/,
    remedy: 'Only a smaller file helps: make one that is shorter, or that holds the sound alone.',
    lasts: true,
  },
  { told: /redirects more than/, remedy: `The address leads round in circles. ${ANOTHER_ADDRESS}` },
  {
    told: /sends the file compressed|did not send the part|no longer sends|answer in valid HTTP/,
    remedy: `The server does not answer as it should. ${ANOTHER_ADDRESS}`,
  },
  // EXTRACTION_FAILED
  {
    told: /^no audio stream/,
    remedy: 'Choose another video: a video without sound has none to extract.',
  },
  { told: /^no audio track/, remedy: 'Begin again with one of the tracks that it has.' },
  {
    told: /holds no audio$/,
    remedy:
      'This track is empty. Begin again with another track, or with another video where it has only this one.',
  },
  { told: /between the start and the end/, remedy: 'Begin again with a part that lies within the sound.' },
  {
    told: /^the output would be larger/,
    remedy: 'Begin again with a shorter part, or with a format or quality that takes less room.',
  },
  {
    told: /^the audio changes its sample rate or channels/,
    remedy: 'Cut the video into shorter ones, or convert its sound to one sample rate with another program.',
    lasts: true,
  },
  { told: /^flac holds at most/, remedy: 'Begin again with another format, or with 1 or 2 channels.' },
  { told: / takes \d+k to \d+k/, remedy: 'Begin again with a bitrate in this range, or with none.' },
  { told: /takes one audio track/, remedy: 'Begin again with the same track in all outputs.' },
  {
    told: /cannot be processed|is not supported; choose/,
    remedy: 'Convert the video with another program first, for example to MP4 with AAC, and upload that.',
  },
  // INVALID_VIDEO
  {
    told: /^the first bytes are of no known container|^the file is empty|not a media file/,
    remedy:
      'It is no video or audio. Choose another file; an address must lead to the file itself, not to a page that shows it.',
  },
  {
    told: /^no channel /,
    remedy: 'Ask for one of the channels that it names, or for all of them.',
  },
  {
    told: /has to be decoded first/,
    remedy: 'Ask for a shorter part of it, with a start and an end.',
  },
  {
    told: /^not supported: /,
    remedy: 'Convert the file with another program first, for example to FLAC, and upload that.',
  },
  {
    told: /is truncated|acceptTruncated/,
    remedy:
      'The end of the file is missing. Get the whole of it; or, by the API, ask with acceptTruncated for what is there.',
  },
  { told: /^the audio is longer than/, remedy: 'Cut the video into shorter ones, and begin a job for each.' },
  {
    told: /corrupt or not supported|has more than \d+ streams|most of the audio could not be decoded/,
    remedy: 'See whether the file plays. If it does, convert it with another program and upload that.',
  },
  {
    told: /did not end within its time limit/,
    remedy: 'See whether the file plays to its end. If it does, begin again with a shorter part of it.',
  },
  {
    told: /is a playlist, without the sound/,
    remedy: 'Give the address of the playlist instead of the file.',
  },
  { told: /^live stream/, remedy: 'Wait until the stream has ended, then begin again.' },
  {
    told: /^encrypted/,
    remedy: 'It is copy-protected, and cannot be read. Choose another video.',
  },
  { told: /playlist lists files/, remedy: 'Give the address of one of the files that it lists.' },
  {
    told: /^the description of the file or stream takes more/,
    remedy: 'Convert the file with another program first, for example to MP4 with AAC, and upload that.',
  },
  { told: /playlist|manifest|stream|segment|EXT-X|IV of a key|has no URI/, remedy: STREAM_AT_FAULT },
  // INTERNAL_ERROR
  {
    told: /ran out of disk space/,
    remedy: 'Tell the operator of the service that its disk is full, then try again.',
  },
  {
    told: /took too long$/,
    remedy: 'Try again. If it happens again, begin with a shorter part, or tell the operator of the service.',
  },
  {
    told: /workers? .*(was|were) lost|worker that began it was lost/,
    remedy: 'Try again. If it happens again, tell the operator of the service which job it was.',
  },
];

/** By code, where no cause above was told. */
const byCode: Readonly<Record<string, string>> = {
  DOWNLOAD_FAILED: 'See that the address opens for everybody, then try again.',
  EXTRACTION_FAILED: 'Begin again with another track, format or part.',
  INVALID_VIDEO: 'See whether the file plays, or take another copy of it.',
  JOB_CANCELLED: 'Try it again if it was cancelled by mistake.',
  INTERNAL_ERROR: 'Try again. If it happens again, tell the operator of the service which job it was.',
};

/** @param told the failure's details, or its message where it has none */
export function remedyOf(code: string, told: string): { remedy: string; lasts: boolean } {
  const cause = code === 'JOB_CANCELLED' ? undefined : causes.find((one) => one.told.test(told));
  return { remedy: cause?.remedy ?? byCode[code] ?? '', lasts: cause?.lasts ?? false };
}
