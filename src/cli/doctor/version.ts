/** Versions as programs tell them. */

/** The first two numbers, `5.1.9-0+deb12u1` and `n5.1` alike; undefined of a build that has none, such as `N-109468-gd39b34123d`. */
export function numbersOf(version: string): readonly [major: number, minor: number] | undefined {
  const [, major, minor] = /^[nv]?(\d+)\.(\d+)/.exec(version) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

/** @param least such as `5.1` */
export function isOlder(version: string, least: string): boolean {
  const [[major, minor] = [0, 0], [leastMajor, leastMinor] = [0, 0]] = [numbersOf(version), numbersOf(least)];
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}
