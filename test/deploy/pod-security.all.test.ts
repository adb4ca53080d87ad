/** The rules that the chart's pods are held to refuse what they are about. */

import type { Json } from 'soundpost-testing/client';
import { expect, it } from 'vitest';
import { restrictedFaults } from './pod-security.ts';

const pod = (): Json => ({
  metadata: { annotations: {} },
  spec: {
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'one',
        ports: [{ containerPort: 8080 }],
        livenessProbe: { httpGet: { path: '/', port: 8080 } },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
    volumes: [{ name: 'data', emptyDir: {} }],
  },
});

it('a pod that asks for nothing passes', () => {
  expect(restrictedFaults(pod())).toEqual([]);
});

const breaches: Readonly<Record<string, (spec: Json, container: Json, metadata: Json) => void>> = {
  hostNetwork: (spec) => Object.assign(spec, { hostNetwork: true }),
  hostPID: (spec) => Object.assign(spec, { hostPID: true }),
  hostIPC: (spec) => Object.assign(spec, { hostIPC: true }),
  hostPath: (spec) => spec.volumes.push({ name: 'node', hostPath: { path: '/' } }),
  'a volume of NFS': (spec) => spec.volumes.push({ name: 'nfs', nfs: { server: 'a', path: '/' } }),
  'pod may be root': (spec) => delete spec.securityContext.runAsNonRoot,
  'container may be root': (_, container) =>
    Object.assign(container.securityContext, { runAsNonRoot: false }),
  'user 0 of the pod': (spec) => Object.assign(spec.securityContext, { runAsUser: 0 }),
  'user 0 of the container': (_, container) => Object.assign(container.securityContext, { runAsUser: 0 }),
  'no seccomp profile': (spec) => delete spec.securityContext.seccompProfile,
  'seccomp off in a container': (_, container) =>
    Object.assign(container.securityContext, { seccompProfile: { type: 'Unconfined' } }),
  'rights may grow': (_, container) => delete container.securityContext.allowPrivilegeEscalation,
  'capabilities stay': (_, container) =>
    Object.assign(container.securityContext, { capabilities: { drop: ['NET_RAW'] } }),
  'a capability more': (_, container) =>
    Object.assign(container.securityContext, { capabilities: { drop: ['ALL'], add: ['SYS_ADMIN'] } }),
  privileged: (_, container) => Object.assign(container.securityContext, { privileged: true }),
  'a port of the node': (_, container) => Object.assign(container.ports[0], { hostPort: 80 }),
  'a probe of another host': (_, container) =>
    Object.assign(container.livenessProbe.httpGet, { host: '169.254.169.254' }),
  'AppArmor off': (spec) => Object.assign(spec.securityContext, { appArmorProfile: { type: 'Unconfined' } }),
  'AppArmor off, the old way': (_, __, metadata) =>
    Object.assign(metadata.annotations, {
      'container.apparmor.security.beta.kubernetes.io/one': 'unconfined',
    }),
  SELinux: (_, container) => Object.assign(container.securityContext, { seLinuxOptions: { type: 'spc_t' } }),
  'all of /proc': (_, container) => Object.assign(container.securityContext, { procMount: 'Unmasked' }),
  'a sysctl of the node': (spec) =>
    Object.assign(spec.securityContext, { sysctls: [{ name: 'kernel.msgmax', value: '1' }] }),
  'a container that runs before': (spec) => Object.assign(spec, { initContainers: [{ name: 'init' }] }),
};

it.each(Object.keys(breaches))('refuses: %s', (name) => {
  const { metadata, spec } = pod();
  breaches[name]?.(spec, spec.containers[0], metadata);
  expect(restrictedFaults({ metadata, spec })).not.toEqual([]);
});
