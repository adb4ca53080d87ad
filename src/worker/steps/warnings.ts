/** What a caller should know of a job that completed nevertheless (decisions A4). */
import type { MissingSound } from 'soundpost-media/source-request';
import type { ExtractResult } from '../../jobs/payloads.ts';
import type { ExtractedAudio } from './extract.ts';

type Warning = ExtractResult['warnings'][number];
type MadeFile = ExtractedAudio['extraction']['files'][number];

/** Less is not worth a word. */
const LEAST_FILLED_SECONDS = 1;

export function warningsOf(extracted: ExtractedAudio): Warning[] {
  const { outputs, extraction, video } = extracted;
  const { files, voice, truncated } = extraction;
  const ofVoice = voice?.warnings.filter((code) => !files[0]?.warnings.includes(code)) ?? [];
  return [
    ...(truncated === null ? [] : [{ code: 'TRUNCATED' as const, message: truncated }]),
    ...(video.missing === undefined ? [] : [segmentsMissing(video.missing)]),
    ...files.flatMap((file, nth) =>
      ofFile(file, extracted).map((warning) => {
        const { name } = outputs[nth] ?? {};
        return name === undefined ? warning : { ...warning, output: name };
      }),
    ),
    ...ofVoice.map((code) => soundWarning(code, extracted)),
  ];
}

function ofFile({ warnings, filledSeconds }: MadeFile, extracted: ExtractedAudio): Warning[] {
  const heard = warnings.map((code) => soundWarning(code, extracted));
  return filledSeconds > LEAST_FILLED_SECONDS ? [...heard, gapsFilled(filledSeconds)] : heard;
}

function soundWarning(code: MadeFile['warnings'][number], { extraction }: ExtractedAudio): Warning {
  const said = {
    SILENT: `The output is silent: its peak is below −60 dBFS.${otherTracks(extraction.soundingTracks)}`,
    ONE_SIDED: 'One of the two channels is silent, so mono uses the other one.',
    CANCELLED_OUT: 'The two channels cancel each other out, so mono uses the left one.',
  };
  return { code, message: said[code] };
}

/** A hint of where the sound is; empty if that is not known. */
function otherTracks(sounding: readonly number[]): string {
  const [only] = sounding;
  if (only === undefined) return '';
  return sounding.length === 1
    ? ` Track ${only} has sound: choose it with "track": ${only}.`
    : ` Tracks ${sounding.join(', ')} have sound: choose one with "track".`;
}

function gapsFilled(seconds: number): Warning {
  const message = `Silence fills ${seconds.toFixed(1)} s of gaps in the source; "timeline": "audio" closes them.`;
  return { code: 'GAPS_FILLED', message, seconds };
}

function segmentsMissing({ markedSeconds, segments, segmentsSeconds }: MissingSound): Warning {
  const marked = `The stream's playlist marks ${markedSeconds.toFixed(1)} s of segments as missing.`;
  const them = segments === 1 ? '1 segment was' : `${segments} segments were`;
  const broken = `${them} empty, incomplete or unreadable in three attempts: ${segmentsSeconds.toFixed(2)} s of the stream's audio are missing.`;
  const message = [...(markedSeconds > 0 ? [marked] : []), ...(segments > 0 ? [broken] : [])].join(' ');
  return { code: 'SEGMENTS_MISSING', message, seconds: markedSeconds + segmentsSeconds };
}
