/** What was heard in the parts, put together on the source's clock (pure). */
import type { PartHeard } from './answer.ts';
import type { Segment, Transcript } from './transcript.ts';

interface HeardPart extends PartHeard {
  /** Where the part begins in the recording, seconds. */
  readonly fromSeconds: number;
}

/** A thousandth of a second, as subtitles have it. */
const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000;

/**
 * @param parts in order
 * @param recording how long it is, and where its first sample lies on the source's clock (decisions A2a), seconds
 * @param language what was asked for, if anything was
 */
export function joinParts(
  parts: readonly HeardPart[],
  recording: { readonly startOffsetSeconds: number; readonly durationSeconds: number },
  language: string | undefined,
): Transcript {
  const { startOffsetSeconds, durationSeconds } = recording;
  const segments = parts.flatMap(({ fromSeconds, segments }) =>
    segments.map(({ start, end, text }): Segment => {
      const shift = startOffsetSeconds + fromSeconds;
      return { start: rounded(start + shift), end: rounded(end + shift), text };
    }),
  );
  return {
    language: language ?? mostHeard(parts),
    durationSeconds: rounded(durationSeconds),
    segments,
  };
}

/** The language in which most was said. */
function mostHeard(parts: readonly PartHeard[]): string | null {
  const said = new Map<string, number>();
  for (const { language, segments } of parts) {
    const length = segments.reduce((sum, { text }) => sum + text.length, 0);
    if (language !== null) said.set(language, (said.get(language) ?? 0) + length);
  }
  const [most] = [...said].sort(([, one], [, other]) => other - one);
  return most?.[0] ?? null;
}
