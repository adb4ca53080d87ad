/** Of which versions `doctor` warns; what it says is in media.core-all.test.ts. */
import { expect, it } from 'vitest';
import { fixedRelease, flawsFixedSince } from '../../../src/cli/doctor/ffmpeg-flaws.ts';

it.each<[string, string[], string[], string | undefined]>([
  // Debian 12 has the fixes of May, and not those of June.
  ['5.1.9-0+deb12u1', ['ogg', 'truespeech'], ['mpegts', 'aac'], '5.1.10'],
  // Debian 13 before its update of May.
  ['7.1.3-0+deb13u1', ['mpegts', 'caf', 'ogg'], ['aac'], '7.1.5'],
  // Ubuntu 24.04
  ['6.1.1-3ubuntu5', ['mpegts', 'aac', 'ogg'], [], '6.1.6'],
  ['n8.1', ['mpegts'], ['aac'], '8.1.2'],
  ['7.0.3', ['mpegts', 'ogg'], [], undefined],
])('%s lacks fixes in %j, not in %j, which %s brings', (version, lacking, fixed, release) => {
  const names = flawsFixedSince(version).map(({ part }) => part.split(' ')[1]);
  expect(names).toEqual(expect.arrayContaining(lacking));
  expect(names.filter((name) => fixed.includes(name ?? ''))).toEqual([]);
  expect(fixedRelease(version)).toBe(release);
});

it.each(['5.1.10', '7.1.5-0+deb13u1', '7.1.6', '8.1.2', '9.0.2', 'N-109468-gd39b34123d'])(
  'no newer release is known to fix more than %s',
  (version) => expect(flawsFixedSince(version)).toEqual([]),
);
