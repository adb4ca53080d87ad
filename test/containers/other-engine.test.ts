/**
 * script/test-containers beside another engine that runs: what stands in for that one are its bridge, addresses, rules and settings, in
 * a network namespace of the test's own, so that nothing of this machine is at stake.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT } from './engine.ts';

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;

/** What another engine has on the machine's network. */
const STATE = `
ip -o link | sed 's/^[0-9]*: //'; ip -o -4 address; ip route
for table in filter nat; do for iptables in iptables ip6tables; do $iptables -t $table -S; done; done
cat /proc/sys/net/ipv4/ip_forward
`;

/** docker0 with its address, and rules as an engine makes them; then the engine of the script, and what is there before and after. */
const SCENE = `
set -euo pipefail
mount -t tmpfs none /etc/docker
ip link set lo up
ip link add docker0 type bridge
ip address add 172.17.0.1/16 dev docker0
ip link set docker0 up
echo 1 >/proc/sys/net/ipv4/ip_forward
iptables -N DOCKER
iptables -P FORWARD DROP
iptables -A FORWARD -o docker0 -j DOCKER
iptables -A FORWARD -i docker0 ! -o docker0 -j ACCEPT
iptables -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
# With settings that an engine with other flags would not start with.
echo '{"bridge": "docker0", "data-root": "/var/lib/docker"}' >/etc/docker/daemon.json
state() { ${STATE} }
state >"$1/before"
cat /etc/docker/* >>"$1/before"
code=0
script/test-containers --engine >"$1/output" 2>&1 || code=$?
state >"$1/after"
cat /etc/docker/* >>"$1/after"
exit $code
`;

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-test-other-engine-'));
});
afterAll(() => rm(folder, { recursive: true }));

it.skipIf(!isRoot)(
  'leaves its bridge, addresses, rules and settings as they are, and nothing of its own',
  async () => {
    const { DOCKER_HOST: _, ...env } = process.env;
    const before = await readdir('/var/lib/docker').catch(() => []);
    await writeFile(join(folder, 'scene'), SCENE);
    const unshare = ['--net', '--mount', '--', 'bash', join(folder, 'scene'), folder];
    const ended = await run('unshare', unshare, { cwd: ROOT, env: { ...env, TMPDIR: folder } }).catch(
      (error: unknown) => error,
    );
    const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');
    expect(ended, await read('output')).not.toBeInstanceOf(Error);
    expect(await read('output')).toContain('started a container engine');
    const state = await read('before');
    expect(state).toMatch(/docker0 .*172\.17\.0\.1/);
    expect(state).toContain('-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE');
    expect(await read('after')).toBe(state);
    expect(await readdir('/var/lib/docker').catch(() => [])).toEqual(before);
    expect((await readdir(folder)).sort()).toEqual(['after', 'before', 'output', 'scene']);
  },
);
