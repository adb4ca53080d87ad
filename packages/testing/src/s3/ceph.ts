/**
 * Ceph's S3 server on one machine, in memory: a monitor, one OSD and a gateway, all on 127.0.0.1,
 * in a Debian of their own (packages/testing/src/debian-packages). It checks signatures, and
 * answers what s3rver is only taught to.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { S3Options } from 'soundpost-kit/storage/s3-bucket';
import { debianPackages } from '../debian-packages.ts';
import { fetch } from '../http.ts';
import { freePorts } from '../ports.ts';
import { until } from '../until.ts';

const run = promisify(execFile);

const BUCKET = 'soundpost-test';
const ACCESS_KEY_ID = 'SOUNDPOST';
const SECRET_ACCESS_KEY = 'the-secret-of-the-tests';
/** Takes several times the largest object, since what was removed is freed later. */
const DEVICE_BYTES = 8 * 1024 ** 3;
const STARTS_WITHIN_MS = 120_000;

/** Where Ceph is installed, or why it is not to be had here. The first call takes minutes. */
export function cephRoot(): { readonly root: string } | { readonly missing: string } {
  return debianPackages('ceph', ['ceph-mon', 'ceph-osd', 'ceph-common', 'radosgw']);
}

type Daemon = 'ceph-mon' | 'ceph-osd' | 'radosgw';

export class Ceph {
  readonly options: S3Options;
  readonly #root: string;
  readonly #folder: string;
  readonly #daemons = new Map<Daemon, ChildProcess>();

  private constructor(root: string, folder: string, port: number) {
    this.#root = root;
    this.#folder = folder;
    this.options = {
      bucket: BUCKET,
      prefix: 'some/prefix/',
      endpoint: `http://127.0.0.1:${port}`,
      region: 'us-east-1',
      credentials: { accessKeyId: ACCESS_KEY_ID, secretAccessKey: SECRET_ACCESS_KEY },
    };
  }

  /** Resolves when there is an empty bucket. */
  static async start(root: string): Promise<Ceph> {
    const folder = await mkdtemp(join(root, 'tmp', 'ceph-'));
    const [port = 0, monitorPort = 0] = await freePorts(2);
    const ceph = new Ceph(root, folder, port);
    try {
      await ceph.#startDaemons(port, monitorPort);
      return ceph;
    } catch (error) {
      await ceph.close();
      throw error;
    }
  }

  /** The settings of a service that keeps its files here. */
  environment(): Record<string, string> {
    return {
      STORAGE_URL: `s3://${BUCKET}/a/prefix`,
      S3_ENDPOINT: this.options.endpoint ?? '',
      S3_REGION: this.options.region,
      S3_ACCESS_KEY_ID: ACCESS_KEY_ID,
      S3_SECRET_ACCESS_KEY: SECRET_ACCESS_KEY,
    };
  }

  async close(): Promise<void> {
    for (const name of [...this.#daemons.keys()].reverse()) await this.#kill(name);
    await rm(this.#folder, { recursive: true });
  }

  /** Stops what answers requests, or what holds the objects, for so long. */
  async freeze(name: 'radosgw' | 'ceph-osd', ms: number): Promise<void> {
    const daemon = this.#daemons.get(name);
    daemon?.kill('SIGSTOP');
    await delay(ms);
    daemon?.kill('SIGCONT');
  }

  /** SIGKILL of what answers requests; resolves when another one answers. */
  async killGateway(awayMs: number): Promise<void> {
    await this.#kill('radosgw');
    await delay(awayMs);
    await this.#startGateway();
  }

  async #kill(name: Daemon): Promise<void> {
    const daemon = this.#daemons.get(name);
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const exited = once(daemon, 'exit');
    daemon.kill('SIGKILL');
    await exited;
  }

  async #startDaemons(port: number, monitorPort: number): Promise<void> {
    const inside = this.#folder.slice(this.#root.length);
    const clusterId = randomUUID();
    for (const name of ['mon', 'osd', 'rgw']) await mkdir(join(this.#folder, name));
    await writeFile(join(this.#folder, 'ceph.conf'), configuration(inside, clusterId, port, monitorPort));
    await this.#run('monmaptool', [
      ...['--create', '--fsid', clusterId, '--addv', 'a', `[v2:127.0.0.1:${monitorPort}]`],
      `${inside}/monmap`,
    ]);
    await this.#run('ceph-mon', ['--mkfs', '-i', 'a', '--monmap', `${inside}/monmap`]);
    this.#daemon('ceph-mon', ['-i', 'a']);
    await this.#run('ceph', ['mon', 'stat']);
    const osdId = randomUUID();
    await this.#run('ceph', ['osd', 'new', osdId]);
    await this.#run('ceph-osd', ['-i', '0', '--mkfs', '--osd-uuid', osdId]);
    this.#daemon('ceph-osd', ['-i', '0']);
    await this.#run('radosgw-admin', [
      ...['user', 'create', '--uid', 'tests', '--display-name', 'tests'],
      ...['--access-key', ACCESS_KEY_ID, '--secret-key', SECRET_ACCESS_KEY],
    ]);
    await this.#startGateway();
    const { endpoint = '', region, credentials } = this.options;
    const client = new S3Client({
      endpoint,
      region,
      forcePathStyle: true,
      ...(credentials && { credentials }),
    });
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
    client.destroy();
  }

  async #startGateway(): Promise<void> {
    this.#daemon('radosgw', ['-n', 'client.rgw', '--no-mon-config']);
    const answers = (): Promise<boolean> =>
      fetch(this.options.endpoint ?? '').then(
        ({ ok }) => ok,
        () => false,
      );
    await until('the gateway answers', answers, STARTS_WITHIN_MS);
  }

  async #run(command: string, args: readonly string[]): Promise<void> {
    await run('chroot', [this.#root, command, ...args], {
      env: this.#environment(),
      timeout: STARTS_WITHIN_MS,
    });
  }

  /** It ends with this process, whatever ends that. */
  #daemon(command: Daemon, args: readonly string[]): void {
    const inRoot = ['chroot', this.#root, command, '-f', ...args];
    this.#daemons.set(
      command,
      spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...inRoot], {
        stdio: 'ignore',
        env: this.#environment(),
      }),
    );
  }

  #environment(): Record<string, string> {
    return {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      CEPH_CONF: `${this.#folder.slice(this.#root.length)}/ceph.conf`,
    };
  }
}

/** One copy of everything, in memory, without keys between the daemons. */
function configuration(folder: string, clusterId: string, port: number, monitorPort: number): string {
  return `[global]
fsid = ${clusterId}
mon_host = v2:127.0.0.1:${monitorPort}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_cluster_mode = crc
ms_mon_service_mode = crc
ms_mon_client_mode = crc
osd_objectstore = memstore
memstore_device_bytes = ${DEVICE_BYTES}
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 2000
mon_data = ${folder}/mon
osd_data = ${folder}/osd
run_dir = ${folder}
admin_socket = ${folder}/$name.asok
log_file = ${folder}/$name.log
[client.rgw]
rgw_data = ${folder}/rgw
rgw_frontends = beast endpoint=127.0.0.1:${port}
`;
}
