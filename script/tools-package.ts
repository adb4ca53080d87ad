/**
 * Writes the npm package of the tools that script/ffmpeg has built: the three programs with their checksums, the licences of what is linked into them, and what
 * the sources are and how they were built.
 *
 *   node script/tools-package.ts <folder of the package>
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder = ''] = process.argv.slice(2);
const root = join(import.meta.dirname, '..');
const built = join(root, '.ffmpeg/bin');
const machine = `${process.platform}-${process.arch}`;
const name = `soundpost-tools-${machine}`;
const { version, license, publishConfig } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Debian's packages whose archives are linked in. */
const LINKED = ['libmp3lame-dev', 'libopus-dev', 'libvorbis-dev', 'libogg-dev', 'zlib1g-dev', 'libc6-dev'];
const LICENCES = ['LGPL-2', 'LGPL-2.1', 'GPL-3'];

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8' }).trim();

const said = run(join(built, 'ffmpeg'), '-version');
const ffmpeg = /^ffmpeg version (\S+)/.exec(said)?.[1] ?? '';
const flags = /^configuration: (.*)$/m.exec(said)?.[1] ?? '';
// biome-ignore lint/suspicious/noTemplateCurlyInString: fields of dpkg-query
const FORMAT = '--showformat=${source:Package}=${source:Version}\n';
const libraries = run('dpkg-query', '--show', FORMAT, ...LINKED);
const sources = [`ffmpeg=7:${ffmpeg}`, ...libraries.split('\n')];

for (const part of ['bin', 'licences', 'source']) mkdirSync(join(folder, part), { recursive: true });
const tools = ['ffmpeg', 'ffprobe', 'soundpost-start'];
for (const tool of tools) copyFileSync(join(built, tool), join(folder, 'bin', tool));
const sums = tools.map((tool) => {
  const sum = createHash('sha256').update(readFileSync(join(built, tool)));
  return `${sum.digest('hex')}  bin/${tool}\n`;
});
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));

for (const part of ['ffmpeg', ...LINKED]) {
  copyFileSync(`/usr/share/doc/${part}/copyright`, join(folder, 'licences', part));
}
for (const licence of LICENCES) {
  copyFileSync(`/usr/share/common-licenses/${licence}`, join(folder, 'licences', licence));
}
copyFileSync(join(root, 'LICENSE'), join(folder, 'licences/soundpost-start'));

for (const file of ['script/ffmpeg', 'script/ffmpeg.patch', 'packages/media/src/start.c']) {
  copyFileSync(join(root, file), join(folder, 'source', file.replace(/.*\//, '')));
}
writeFileSync(join(folder, 'source/configure'), `${flags}\n`);
writeFileSync(join(folder, 'source/versions'), `${sources.join('\n')}\n`);

const manifest = {
  name,
  version,
  description: `ffmpeg, ffprobe and the starter of Soundpost for ${machine}: static, for sound alone`,
  license: `${license} AND LGPL-2.1-or-later AND BSD-3-Clause AND Zlib`,
  os: [process.platform],
  cpu: [process.arch],
  ffmpeg,
  exports: { './package.json': './package.json' },
  publishConfig,
};
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
writeFileSync(
  join(folder, 'README.md'),
  `# ${name}

ffmpeg ${ffmpeg}, ffprobe and \`soundpost-start\`, which starts and confines them, for ${machine}. npm installs this package with \`soundpost\` and with
\`soundpost-media\`, which use it. The programs are static and need nothing of the system. They decode and encode sound alone, without network.

\`sha256sum -c SHA256SUMS\` checks the programs.

## Licences

\`soundpost-start\` is under the MIT licence. ffmpeg and ffprobe are under the LGPL 2.1 or later: FFmpeg was configured without \`--enable-gpl\`,
\`--enable-version3\` and \`--enable-nonfree\`. LAME, libopus, libvorbis, libogg, zlib and the GNU C library are linked in. The folder \`licences\` has the
words of each.

## Sources

You may change these programs and build them again. What they were made of:

- the source packages of Debian in \`source/versions\`. \`apt-get source --download-only $(cat source/versions)\` fetches them; https://snapshot.debian.org
  keeps every version. The release of Soundpost ${version} has the same archives in \`sources-${machine}.tar\`;
- \`source/ffmpeg.patch\`, the one change; \`source/configure\`, the flags; \`source/ffmpeg\`, the script that builds and links them;
- \`source/start.c\`, the whole of \`soundpost-start\`.
`,
);
