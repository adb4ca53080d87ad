/** The commands of the system at hand. */

/** What is installed when something is missing: the package's name by package manager; absent: not offered there. */
const PACKAGES = {
  ffmpeg: { 'apt-get': 'ffmpeg', dnf: 'ffmpeg-free', apk: 'ffmpeg', brew: 'ffmpeg' },
  redis: { 'apt-get': 'redis-server', dnf: 'redis', apk: 'redis', brew: 'redis' },
  bubblewrap: { 'apt-get': 'bubblewrap', dnf: 'bubblewrap', apk: 'bubblewrap' },
  'util-linux': { 'apt-get': 'util-linux', dnf: 'util-linux', apk: 'util-linux-misc' },
  node: { apk: 'nodejs', brew: 'node' },
  chrony: { 'apt-get': 'chrony', dnf: 'chrony', apk: 'chrony' },
} as const satisfies Record<string, Partial<Record<PackageManager, string>>>;

type PackageManager = 'apt-get' | 'dnf' | 'apk' | 'brew';
type Software = keyof typeof PACKAGES;

const INSTALL: readonly (readonly [PackageManager, (name: string, root: string) => string])[] = [
  ['apt-get', (name, root) => `${root}apt-get update && ${root}apt-get install -y ${name}`],
  ['dnf', (name, root) => `${root}dnf install -y ${name}`],
  ['apk', (name, root) => `${root}apk add ${name}`],
  ['brew', (name) => `brew install ${name}`],
];

/** Where a program of that name lies, undefined when there is none. */
type FindProgram = (name: string) => string | undefined;

interface SystemFacts {
  readonly find: FindProgram;
  /** undefined where there are none */
  readonly userId: number | undefined;
  /** Whether systemd runs, and not only its programs are there. */
  readonly hasSystemd: boolean;
}

export class System {
  /** What a command that only the administrator may give begins with: nothing, or `sudo `. */
  readonly root: string;
  readonly find: FindProgram;
  readonly #hasSystemd: boolean;

  constructor({ find, userId, hasSystemd }: SystemFacts) {
    this.find = find;
    this.root = userId === 0 ? '' : 'sudo ';
    this.#hasSystemd = hasSystemd;
  }

  /** Installs it, or its newest version; undefined where the system has no package manager that is known here, or no such package. */
  install(software: Software): string | undefined {
    const offered: Partial<Record<PackageManager, string>> = PACKAGES[software];
    for (const [manager, command] of INSTALL) {
      const name = offered[manager];
      if (name !== undefined && this.find(manager) !== undefined) return command(name, this.root);
    }
    return undefined;
  }

  /** Starts a Redis that is installed as a service; undefined where there are no services. */
  startRedis(): string | undefined {
    const unit = this.find('apt-get') === undefined ? 'redis' : 'redis-server';
    return this.#hasSystemd ? `${this.root}systemctl start ${unit}` : undefined;
  }

  /** Sets the clock, now and where possible from now on. */
  setClock(): string | undefined {
    if (this.#hasSystemd) return `${this.root}timedatectl set-ntp true`;
    if (this.find('chronyc') !== undefined) return `${this.root}chronyc makestep`;
    if (this.find('sntp') !== undefined) return `${this.root}sntp -sS time.apple.com`;
    const install = this.install('chrony');
    return install && `${install} && ${this.root}chronyd -q "pool pool.ntp.org iburst"`;
  }
}
