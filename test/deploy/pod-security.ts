/**
 * The level "restricted" of Kubernetes' Pod Security Standards, rule by rule as they are published
 * (https://kubernetes.io/docs/concepts/security/pod-security-standards/, which holds all of "baseline" too). Windows alone is left out.
 */
import type { Json } from 'soundpost-testing/client';

const VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

const SYSCTLS = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_wmem',
];

const SELINUX_TYPES = [
  undefined,
  '',
  'container_t',
  'container_init_t',
  'container_kvm_t',
  'container_engine_t',
];
const SECCOMP = ['RuntimeDefault', 'Localhost'];
const APPARMOR = [undefined, 'RuntimeDefault', 'Localhost'];

/** What the pod breaches, a line each; empty: nothing. @param template `metadata` and `spec` of a pod */
export function restrictedFaults({ metadata, spec }: Json): string[] {
  const containers = ['containers', 'initContainers', 'ephemeralContainers'].flatMap(
    (kind) => spec[kind] ?? [],
  );
  const whole: Json = spec.securityContext ?? {};
  return [
    ...['hostNetwork', 'hostPID', 'hostIPC'].filter((field) => spec[field]),
    ...(spec.volumes ?? []).flatMap(volumeFaults),
    ...(whole.sysctls ?? [])
      .map(({ name }: Json) => name)
      .filter((name: string) => !SYSCTLS.includes(name))
      .map((name: string) => `sysctl ${name}`),
    ...annotationFaults(metadata?.annotations ?? {}),
    ...contextFaults('pod', whole),
    ...containers.flatMap((container: Json) => containerFaults(container, whole)),
  ];
}

function volumeFaults({ name, ...kinds }: Json): string[] {
  return Object.keys(kinds)
    .filter((kind) => !VOLUMES.includes(kind))
    .map((kind) => `volume ${name} is a ${kind}`);
}

function annotationFaults(annotations: Json): string[] {
  return Object.entries<string>(annotations)
    .filter(
      ([name, value]) =>
        name.startsWith('container.apparmor.security.beta.kubernetes.io/') &&
        value !== 'runtime/default' &&
        !value.startsWith('localhost/'),
    )
    .map(([name, value]) => `${name}: ${value}`);
}

/** Of what both a pod and a container may say. */
function contextFaults(whose: string, context: Json): string[] {
  const { seLinuxOptions = {}, appArmorProfile, runAsUser, procMount } = context;
  const faults = [];
  if (!SELINUX_TYPES.includes(seLinuxOptions.type)) faults.push(`seLinuxOptions.type ${seLinuxOptions.type}`);
  if (seLinuxOptions.user || seLinuxOptions.role) faults.push('seLinuxOptions.user or role');
  if (!APPARMOR.includes(appArmorProfile?.type)) faults.push(`appArmorProfile ${appArmorProfile.type}`);
  if (runAsUser === 0) faults.push('runAsUser 0');
  if (procMount !== undefined && procMount !== 'Default') faults.push(`procMount ${procMount}`);
  if (context.windowsOptions?.hostProcess) faults.push('hostProcess');
  return faults.map((fault) => `${whose}: ${fault}`);
}

function containerFaults(container: Json, whole: Json): string[] {
  const own: Json = container.securityContext ?? {};
  const { add = [], drop = [] } = own.capabilities ?? {};
  const faults = [];
  if (own.privileged) faults.push('privileged');
  if (own.allowPrivilegeEscalation !== false) faults.push('allowPrivilegeEscalation is not false');
  if ((own.runAsNonRoot ?? whole.runAsNonRoot) !== true) faults.push('runAsNonRoot is not true');
  if (!SECCOMP.includes((own.seccompProfile ?? whole.seccompProfile)?.type)) faults.push('seccompProfile');
  if (!drop.includes('ALL')) faults.push('does not drop ALL capabilities');
  for (const name of add) if (name !== 'NET_BIND_SERVICE') faults.push(`adds ${name}`);
  if ((container.ports ?? []).some(({ hostPort }: Json) => hostPort)) faults.push('hostPort');
  const handlers = [
    container.livenessProbe,
    container.readinessProbe,
    container.startupProbe,
    container.lifecycle?.preStop,
    container.lifecycle?.postStart,
  ];
  if (handlers.some((handler) => handler?.httpGet?.host || handler?.tcpSocket?.host))
    faults.push('host of a probe');
  return [...contextFaults(container.name, own), ...faults.map((fault) => `${container.name}: ${fault}`)];
}
