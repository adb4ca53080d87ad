/** What a reader of the pages has when he begins: a service, a key, a short video, and a folder with the examples in it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { projectFolder } from './markdown.ts';
import { Walk } from './walk.ts';

/** What lies in the reader's folder. */
const RECORDINGS = ['talk.mp4', 'greeting.mp3'];

/** As the tutorial starts it. */
export const START = 'OUTBOUND_ALLOW=127.0.0.1:9000,127.0.0.1:9001 ./script/server\n';

const GATEWAY_API_KEY = 'a-key-of-the-gateway-for-the-walks';

/** Packages that the examples name; a reader installs them. */
const PACKAGES = ['standardwebhooks', 'tus-js-client'];

export class Stand implements AsyncDisposable {
  readonly walk: Walk;

  private constructor(walk: Walk) {
    this.walk = walk;
  }

  static async open(): Promise<Stand> {
    const walk = await Walk.begin();
    const lines = walk.serve(START, { GATEWAY_API_KEY, LOG_LEVEL: 'silent' })[Symbol.asyncIterator]();
    await Promise.all([firstKey(lines, walk), makeVideo(walk.folder), buildClient(walk.folder)]);
    return new Stand(walk);
  }

  /** A fresh folder for a page. What the last one left running is ended. */
  async enter(page: string): Promise<void> {
    const { walk } = this;
    await walk.endBeside(1);
    const folder = join(walk.folder, page.replaceAll(/[/.]/g, '-'));
    await mkdir(join(folder, 'script'), { recursive: true });
    for (const name of RECORDINGS) {
      await cp(join(walk.folder, name), join(folder, name));
    }
    await cp(join(projectFolder, 'examples'), join(folder, 'examples'), { recursive: true });
    await symlink(join(walk.folder, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), '{"private": true}\n');
    // Without bootstrap: it would ask the package managers each time.
    const main = `export DATA_DIR='${join(walk.folder, 'data')}'\nexec node '${join(projectFolder, 'src/main.ts')}'`;
    for (const [name, more] of [
      ['soundpost', ''],
      ['server', ' serve'],
    ]) {
      await writeFile(join(folder, `script/${name}`), `#!/bin/sh\n${main}${more} "$@"\n`, { mode: 0o755 });
    }
    walk.enter(folder);
    Object.assign(walk.variables, { GATEWAY_API_KEY, API: walk.translated('http://127.0.0.1:8080') });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.walk[Symbol.asyncDispose]();
  }
}

async function firstKey(lines: AsyncIterator<string>, walk: Walk): Promise<void> {
  for (;;) {
    const { value, done } = await lines.next();
    const [, key] = /^API key {2}(sp_\w+)/.exec(String(value)) ?? [];
    if (done) {
      throw new Error('the service ended before it printed a key');
    }
    if (key !== undefined) {
      walk.variables.KEY = key;
      return;
    }
  }
}

async function makeVideo(folder: string): Promise<void> {
  const sources = ['testsrc2=size=160x120:duration=2', 'sine=frequency=440:duration=2'];
  const inputs = sources.flatMap((source) => ['-f', 'lavfi', '-i', source]);
  const outputs = RECORDINGS.flatMap((name) => ['-shortest', join(folder, name)]);
  await succeed('ffmpeg', ['-v', 'error', ...inputs, ...outputs]);
}

/** What `npm install` of the client and of the examples' packages would put there. */
async function buildClient(folder: string): Promise<void> {
  const packages = join(folder, 'node_modules');
  const client = join(packages, 'soundpost-client');
  await mkdir(packages, { recursive: true });
  await succeed(join(projectFolder, 'script/build-client'), [client]);
  for (const name of PACKAGES) {
    await symlink(join(projectFolder, 'node_modules', name), join(packages, name));
  }
}

async function succeed(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) {
    throw new Error(`${command} ${args.join(' ')} ended with ${code}`);
  }
}
