/** The commands of the operating system. */

/** What to install, by package manager; absent: not available there. */
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

/** The path of a program, or undefined. */
type FindProgram = (name: string) => string | undefined;

interface SystemFacts {
  readonly find: FindProgram;
  /** undefined where there are no user ids */
  readonly userId: number | undefined;
  /** Whether systemd runs, not merely its programs exist. */
  readonly hasSystemd: boolean;
}

export class System {
  /** Prefix of an administrator's command: nothing, or `sudo `. */
  readonly root: string;
  readonly find: FindProgram;
  readonly #hasSystemd: boolean;

  constructor({ find, userId, hasSystemd }: SystemFacts) {
    this.find = find;
    this.root = userId === 0 ? '' : 'sudo ';
    this.#hasSystemd = hasSystemd;
  }

  /** Installs or updates it; undefined without a known package manager or package. */
  install(software: Software): string | undefined {
    const offered: Partial<Record<PackageManager, string>> = PACKAGES[software];
    for (const [manager, command] of INSTALL) {
      const name = offered[manager];
      if (name !== undefined && this.find(manager) !== undefined) return command(name, this.root);
    }
    return undefined;
  }

  /** Starts an installed Redis service; undefined without services. */
  startRedis(): string | undefined {
    const unit = this.find('apt-get') === undefined ? 'redis' : 'redis-server';
    return this.#hasSystemd ? `${this.root}systemctl start ${unit}` : undefined;
  }

  /** Sets the clock, now and if possible permanently. */
  setClock(): string | undefined {
    if (this.#hasSystemd) return `${this.root}timedatectl set-ntp true`;
    if (this.find('chronyc') !== undefined) return `${this.root}chronyc makestep`;
    if (this.find('sntp') !== undefined) return `${this.root}sntp -sS time.apple.com`;
    const install = this.install('chrony');
    return install && `${install} && ${this.root}chronyd -q "pool pool.ntp.org iburst"`;
  }
}
