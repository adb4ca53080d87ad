/** ffmpeg and ffprobe: their features and their sandbox. */
import { detectSandbox, lacksOf, versionsOf } from 'soundpost-media/abilities';
import { OLDEST_FFMPEG } from 'soundpost-media/requirements';
import type { MediaTools } from 'soundpost-media/run';
import { bringsOwn, type ConfiguredTools, OWN_IS_FASTER } from '../../process/tools.ts';
import { type Finding, isOlder, messageOf, numbersOf, ok } from './check.ts';
import { fixedRelease, flawsFixedSince } from './ffmpeg-flaws.ts';
import type { System } from './system.ts';

type Tools = Omit<MediaTools, 'sandbox'>;

/** Normally 0.1 s; five at once on a busy machine take some seconds. */
const WALL_MS = 15_000;

export async function checkFfmpeg(where: ConfiguredTools, system: System): Promise<Finding[]> {
  const unused: Finding[] =
    where.fault === undefined
      ? []
      : [{ verdict: 'warning', found: where.fault, remedy: 'install it again', command: bringsOwn }];
  return [...unused, ...(await checkUsed(where, system))];
}

async function checkUsed(where: ConfiguredTools, system: System): Promise<Finding[]> {
  if (where.tools === undefined) {
    return [
      {
        verdict: 'fault',
        found: `${where.missing}: no job can run`,
        remedy: `install ffmpeg ${OLDEST_FFMPEG} or newer`,
        command: installFfmpeg(system),
      },
    ];
  }
  const { tools, isOurs, better } = where;
  const limits = { signal: new AbortController().signal, wallLimitMs: WALL_MS };
  try {
    const { ffmpeg, ffprobe } = await versionsOf(tools, limits);
    const age = [...ageFindings('ffmpeg', ffmpeg, system), ...ageFindings('ffprobe', ffprobe, system)];
    const { needed, wanted } = await lacksOf(tools, limits);
    const remedy = isOurs ? BRING_AGAIN : otherBuild(system);
    const findings = [
      ...age,
      ...(age.length > 0 || ffmpeg === undefined ? [] : flawFindings(ffmpeg, isOurs)),
      ...lackFindings('fault', needed, 'was built without', remedy),
      ...lackFindings('warning', wanted, 'cannot read some sources; it was built without', remedy),
    ];
    const found = `ffmpeg ${ffmpeg} (${tools.ffmpegPath}), with every encoder, filter and format that Soundpost uses`;
    const hint = better === undefined ? {} : { remedy: OWN_IS_FASTER, command: better };
    return findings.length > 0 ? findings : [{ ...ok(found), ...hint }];
  } catch (error) {
    return [
      {
        verdict: 'fault',
        found: `${tools.ffmpegPath} or ${tools.ffprobePath} does not run: ${messageOf(error)}`,
        remedy: 'reinstall it',
        command: installFfmpeg(system),
      },
    ];
  }
}

function ageFindings(tool: string, version: string | undefined, system: System): Finding[] {
  // Development builds have no version; their features are checked anyway.
  if (version === undefined || numbersOf(version) === undefined) {
    const found = `this ${tool} has an unknown version (${version ?? 'no answer'})`;
    return [{ verdict: 'warning', found, remedy: `it should be ${OLDEST_FFMPEG} or newer` }];
  }
  if (!isOlder(version, OLDEST_FFMPEG)) return [];
  return [
    {
      verdict: 'fault',
      found: `${tool} ${version} is too old: ${OLDEST_FFMPEG} or newer is needed`,
      remedy:
        'install a newer one; if the system has none, put one from https://ffmpeg.org/download.html first on the PATH',
      command: installFfmpeg(system),
    },
  ];
}

function flawFindings(version: string, isOurs: boolean): Finding[] {
  const parts = [...new Set(flawsFixedSince(version).map(({ part }) => part))];
  if (parts.length === 0) return [];
  const release = fixedRelease(version);
  const since = release === undefined ? 'its branch gets no more fixes' : `ffmpeg ${release} fixes them`;
  const found = `ffmpeg ${version} has published flaws that a source can reach (${parts.join(', ')}); ${since}`;
  const remedy =
    "use Soundpost's own build, which also makes short jobs faster, or update to Debian 13. Ignore this if your distribution has added the fixes to this version";
  return [{ verdict: 'warning', found, ...(isOurs ? BRING_AGAIN : { remedy, command: bringsOwn }) }];
}

function lackFindings(
  verdict: 'fault' | 'warning',
  names: readonly string[],
  what: string,
  remedy: Pick<Finding, 'remedy' | 'command'>,
): Finding[] {
  return names.length === 0
    ? []
    : [{ verdict, found: `this ffmpeg ${what}: ${names.join(', ')}`, ...remedy }];
}

/** A build of ours that is too old: npm's package is as old as Soundpost itself. */
const BRING_AGAIN =
  bringsOwn === 'script/ffmpeg'
    ? { remedy: 'build it again', command: bringsOwn }
    : {
        remedy: 'update Soundpost, whose packages bring a newer one',
        command: 'npm install soundpost@latest',
      };

function otherBuild(system: System): Pick<Finding, 'remedy' | 'command'> {
  return {
    remedy: 'install a build that has them, such as Debian’s or one from https://ffmpeg.org/download.html',
    command: installFfmpeg(system),
  };
}

function installFfmpeg(system: System): string {
  return system.install('ffmpeg') ?? 'open https://ffmpeg.org/download.html';
}

/** @param isRequired SANDBOX=required @param kernel reads a kernel setting */
export async function checkSandbox(
  tools: Tools | undefined,
  isRequired: boolean,
  kernel: (setting: string) => Promise<string | undefined>,
  system: System,
): Promise<Finding[]> {
  if (tools === undefined) {
    return [{ verdict: 'warning', found: 'cannot be checked without ffmpeg and ffprobe' }];
  }
  const limits = { signal: new AbortController().signal, wallLimitMs: WALL_MS };
  try {
    await versionsOf(tools, limits);
  } catch {
    return [{ verdict: 'warning', found: 'cannot be checked: ffmpeg or ffprobe does not run' }];
  }
  const sandbox = await detectSandbox(tools, WALL_MS);
  const findings: Finding[] = [];
  if (!sandbox.hasLimits) {
    findings.push(
      install('util-linux', 'ffmpeg runs without memory and time limits: prlimit is missing', system),
    );
  }
  if (sandbox.level !== 'none') return [ok(`ffmpeg runs in a sandbox (${sandbox.level}), with limits`)];
  return [...findings, await unconfined(isRequired, kernel, system)];
}

async function unconfined(
  isRequired: boolean,
  kernel: (setting: string) => Promise<string | undefined>,
  system: System,
): Promise<Finding> {
  const found = `ffmpeg runs without a sandbox: it can read this user's files and reach the network${isRequired ? '; with SANDBOX=required the service does not start' : ''}`;
  const verdict = isRequired ? 'fault' : 'warning';
  if (system.find('bwrap') === undefined) return { ...install('bubblewrap', found, system), verdict };
  for (const [setting, bad, good] of FORBIDDING) {
    if ((await kernel(setting)) === bad) {
      const name = setting.replace('/', '.');
      const remedy = `${name}=${bad} stops bubblewrap from working; allow user namespaces`;
      return { verdict, found, remedy, command: `${system.root}sysctl -w ${name}=${good}` };
    }
  }
  const remedy =
    'bubblewrap is not allowed to create user namespaces: install the sandbox that needs none (docs/operations/security.md "Sandbox")';
  return { verdict, found, remedy, command: bringsOwn };
}

/** What forbids user namespaces: the setting, its value, and the value that allows them. */
const FORBIDDING = [
  ['kernel/apparmor_restrict_unprivileged_userns', '1', '0'],
  ['kernel/unprivileged_userns_clone', '0', '1'],
  ['user/max_user_namespaces', '0', '10000'],
] as const;

function install(software: Parameters<System['install']>[0], found: string, system: System): Finding {
  const command = system.install(software);
  const remedy = command === undefined ? `this system has no package for ${software}` : `install ${software}`;
  return { verdict: 'warning', found, remedy, command };
}
