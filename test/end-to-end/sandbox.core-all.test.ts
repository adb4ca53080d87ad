/** What an operator sees of the sandbox: in the log, in /health/ready, and where the service refuses to start. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { currentRun, rowsOfRun } from '../by-run.ts';
import { ServiceHome, soundpost } from '../service.ts';

/** The same machine without the two programs that make a sandbox. */
const WITHOUT = [
  ...['bwrap', '--dev-bind', '/', '/', '--die-with-parent'],
  ...['bwrap', 'unshare'].flatMap((program) => ['--ro-bind', '/dev/null', `/usr/bin/${program}`]),
  '--',
];
const worker = [...soundpost, 'worker'];

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
    const { api, gateway } = await home.serve({ SANDBOX: 'required' });
    expect(await readyOf(api)).toMatchObject({ status: 'ok', sandbox: 'bubblewrap' });
    expect(await readyOf(gateway)).toMatchObject({ status: 'ok', sandbox: 'bubblewrap' });
  },
);

it.runIf(currentRun === 'all')('is shown by a lone worker', async () => {
  const address = await home.run(worker).says(/health at (http\S+)\/health/);
  expect(await readyOf(address)).toMatchObject({ status: 'ok', sandbox: 'bubblewrap' });
});

describe('where no sandbox can be had', () => {
  it.runIf(currentRun === 'core')('auto starts, warns with the remedy, and shows it', async () => {
    const process = home.run([...WITHOUT, ...worker]);
    const address = await process.says(/health at (http\S+)\/health/);
    expect(await readyOf(address)).toMatchObject({ status: 'ok', sandbox: 'none' });
    expect(process.output()).toContain('apt-get install bubblewrap');
  });

  it.each(rowsOfRun(['worker', 'gateway', 'serve'], 1))(
    'required keeps %s from starting, with the remedy',
    async (command) => {
      const process = home.run([...WITHOUT, ...soundpost, command], { SANDBOX: 'required' });
      expect(await process.exited).toBe(2);
      expect(process.output()).toMatch(/SANDBOX=required, but .*apt-get install bubblewrap/);
    },
  );

  it.runIf(currentRun === 'all')(
    'required does not concern the API alone, which runs no ffmpeg',
    async () => {
      const api = home.run([...WITHOUT, ...soundpost, 'api'], { SANDBOX: 'required' });
      const ready = await readyOf(await api.says(/^API\s+(http\S+)/m));
      expect(ready).toMatchObject({ status: 'ok' });
      expect(ready).not.toHaveProperty('sandbox');
    },
  );
});
