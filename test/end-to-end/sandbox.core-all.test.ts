/** What an operator sees of the sandbox: in the log, in /health/ready, and where the service refuses to start. */

import { detectSandbox } from 'soundpost-media/abilities';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { fetch } from 'soundpost-testing/http';
import { mediaTools } from 'soundpost-testing/media-tools';
import { ServiceHome, soundpost } from 'soundpost-testing/service';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

/** The same machine without the programs that make a sandbox. */
const WITHOUT = [
  ...['bwrap', '--dev-bind', '/', '/', '--die-with-parent'],
  ...['/usr/bin/bwrap', mediaTools.starterPath ?? '/usr/bin/bwrap'].flatMap((path) => [
    '--ro-bind',
    '/dev/null',
    path,
  ]),
  '--',
];
const worker = [...soundpost, 'worker'];
/** The best that this machine has. */
const { level } = await detectSandbox(mediaTools);

let home: ServiceHome;
beforeEach(async () => {
  home = await ServiceHome.make();
});
afterEach(async () => {
  await home.remove();
});

const readyOf = async (address: string): Promise<unknown> => (await fetch(`${address}/health/ready`)).json();

it.runIf(currentRun === 'core')(
  'is shown by the API and the gateway of serve, which run ffmpeg',
  async () => {
    const { api, gateway } = await home.serve();
    expect(await readyOf(api)).toMatchObject({ status: 'ok', sandbox: level });
    expect(await readyOf(gateway)).toMatchObject({ status: 'ok', sandbox: level });
  },
);

it.runIf(currentRun === 'all')('is shown by a lone worker', async () => {
  const address = await home.run(worker).says(/health at (http\S+)\/health/);
  expect(await readyOf(address)).toMatchObject({ status: 'ok', sandbox: level });
});

it.runIf(currentRun === 'all')('is bubblewrap where there is no starter', async () => {
  const withoutStarter = [
    ...['bwrap', '--dev-bind', '/', '/', '--die-with-parent'],
    ...['--ro-bind', '/dev/null', mediaTools.starterPath ?? '', '--'],
  ];
  const address = await home.run([...withoutStarter, ...worker]).says(/health at (http\S+)\/health/);
  expect(await readyOf(address)).toMatchObject({ status: 'ok', sandbox: 'bubblewrap' });
});

describe('where no sandbox can be had', () => {
  it.runIf(currentRun === 'all')('off starts, and says that it was asked to', async () => {
    const process = home.run(worker, { SANDBOX: 'off' });
    const address = await process.says(/health at (http\S+)\/health/);
    expect(await readyOf(address)).toMatchObject({ status: 'ok', sandbox: 'none' });
    expect(process.output()).toContain('ffmpeg is not confined, as SANDBOX=off says');
  });

  it.runIf(currentRun === 'core')('auto starts, warns with the remedy, and shows it', async () => {
    const process = home.run([...WITHOUT, ...worker], { SANDBOX: 'auto' });
    const address = await process.says(/health at (http\S+)\/health/);
    expect(await readyOf(address)).toMatchObject({ status: 'ok', sandbox: 'none' });
    expect(process.output()).toContain('apt-get install bubblewrap');
  });

  it.each(rowsOfRun(['worker', 'gateway', 'serve'], 1))(
    '%s does not start, and says what to do',
    async (command) => {
      const process = home.run([...WITHOUT, ...soundpost, command]);
      expect(await process.exited).toBe(2);
      expect(process.output()).toMatch(/cannot be confined here: .*apt-get install bubblewrap.*SANDBOX=off/);
    },
  );

  it.runIf(currentRun === 'all')('the API alone does, which runs no ffmpeg', async () => {
    const api = home.run([...WITHOUT, ...soundpost, 'api']);
    const ready = await readyOf(await api.says(/^API\s+(http\S+)/m));
    expect(ready).toMatchObject({ status: 'ok' });
    expect(ready).not.toHaveProperty('sandbox');
  });
});
