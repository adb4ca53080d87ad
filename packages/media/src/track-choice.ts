/** Which of a file's audio tracks is requested (decisions A2, `output.track`). */
import { encrypted, MediaFailure } from './failure.ts';
import type { AudioTrack, Probe } from './probe.ts';
import { findTrack, MIX } from './track-language.ts';

/**
 * @param asked an index, a language or {@link MIX}; undefined: the default-flagged track, else the
 * first.
 * @throws {MediaFailure} EXTRACTION_FAILED, listing the tracks, when there is no such one.
 */
export function chooseTrack(probe: Probe, asked: number | string | undefined): AudioTrack {
  const usable = usableTracks(probe);
  if (asked === MIX && usable.length > 1) return mixOf(usable);
  if (asked === MIX) return chooseTrack(probe, undefined);
  const track = asked === undefined ? defaultTrack(probe) : findTrack(probe.tracks, asked);
  if (track === undefined) {
    const offered = offeredTracks(probe);
    const others = probe.tracks.length - offered.length;
    const known = [...offered.map(describeTrack), ...(others === 0 ? [] : [`${others} more`])].join('; ');
    throw new MediaFailure('EXTRACTION_FAILED', `no audio track ${asked}; the file has ${known}`);
  }
  const fault = faultOf(track);
  if (fault !== null) throw fault;
  return track;
}

/** The track to use unless another is requested, even if no track is usable. */
export function defaultTrack(probe: Probe): AudioTrack {
  return findTrack(probe.tracks.filter(isUsable), undefined) ?? probe.tracks[0];
}

/** More are neither listed nor mixed (decisions A4), and are chosen by their number. */
const OFFERED_TRACKS = 64;

/** What callers get to see. */
export function offeredTracks({ tracks }: Pick<Probe, 'tracks'>): AudioTrack[] {
  return tracks.slice(0, OFFERED_TRACKS);
}

/** The tracks that can be extracted. */
export function usableTracks(probe: Pick<Probe, 'tracks'>): AudioTrack[] {
  return offeredTracks(probe).filter(isUsable);
}

function isUsable(track: AudioTrack): boolean {
  return faultOf(track) === null;
}

/** What a mix of tracks is like: no number stands for it in the file. */
function mixOf(mixed: readonly AudioTrack[]): AudioTrack {
  const most = (of: (track: AudioTrack) => number): number => Math.max(...mixed.map(of));
  const channels = Math.min(
    2,
    most((track) => track.channels),
  );
  const startSeconds = Math.min(...mixed.map((track) => track.startSeconds));
  const isEndKnown = mixed.every(({ declaredSeconds }) => declaredSeconds !== null);
  const endSeconds = most((track) => track.startSeconds + (track.declaredSeconds ?? 0));
  return {
    ...{ index: -1, streamIndex: -1, codec: MIX, profile: null, language: null, tags: {} },
    ...{
      channels,
      layout: channels === 1 ? 'mono' : 'stereo',
      sampleRate: most((track) => track.sampleRate),
    },
    ...{ bitrateKbps: null, bitDepth: most((track) => track.bitDepth ?? 0) || null },
    isFloat: mixed.some(({ isFloat }) => isFloat),
    ...{ isDefault: false, isEncrypted: false, isDecodable: true },
    startSeconds,
    declaredSeconds: isEndKnown ? endSeconds - startSeconds : null,
    mixed,
  };
}

/** The tracks of the file that it is made of. */
export function partsOf(track: AudioTrack): readonly AudioTrack[] {
  return track.mixed ?? [track];
}

/** Why nothing can be made of a track, also no copy (decisions A7). */
function faultOf(track: AudioTrack): MediaFailure | null {
  const { index, codec, channels, sampleRate, isEncrypted, isDecodable } = track;
  if (isEncrypted) return encrypted(`audio track ${index} (${codecName(track)}) needs a key`);
  if (!isDecodable) {
    const name = `audio track ${index} is ${codecName(track)}`;
    return new MediaFailure(
      'EXTRACTION_FAILED',
      `${name}, which is not supported; choose another track, or convert the file first`,
    );
  }
  return channels === 0 || sampleRate === 0
    ? new MediaFailure('EXTRACTION_FAILED', `audio track ${index} (${codec}) has no audio`)
    : null;
}

/** Its codec as ffmpeg names it, with its profile: `aac (LC)`. */
export function codecName({ codec, profile }: Pick<AudioTrack, 'codec' | 'profile'>): string {
  return profile === null ? codec : `${codec} (${profile})`;
}

function describeTrack({ index, language, codec, channels }: AudioTrack): string {
  return `${index}: ${language ?? 'no language'}, ${codec}, ${channels} channels`;
}
