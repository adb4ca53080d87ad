/** What people install the chart with, by what it is about. */
import type { Json } from 'soundpost-testing/client';

const made = {
  values: {
    SECRET_KEY: 'k'.repeat(64),
    METRICS_TOKEN: 'm'.repeat(64),
    REDIS_PASSWORD: 'p'.repeat(64),
  },
};
const toRedis = {
  to: [{ ipBlock: { cidr: '10.0.0.10/32' } }],
  ports: [{ port: 6379 }],
};
const bucket = { kind: 's3', s3: { url: 's3://my-bucket/soundpost', region: 'eu-central-1' } };

/** The first is the default, but for the secrets that only a cluster keeps. */
export const valueSets: Readonly<Record<string, Json>> = {
  default: { secret: made },
  'a Redis outside': {
    secret: made,
    redis: { url: 'rediss://redis.example:6379', existingSecret: '' },
    networkPolicy: { extraEgress: [toRedis] },
  },
  'Secrets of one’s own': {
    secret: { existingSecret: 'my-secret' },
    redis: { existingSecret: 'my-redis', existingSecretKey: 'url' },
    networkPolicy: { extraEgress: [toRedis] },
  },
  's3, with a role': {
    secret: made,
    storage: {
      ...bucket,
      s3: { ...bucket.s3, endpoint: 'https://s3.example', publicEndpoint: 'https://files.example' },
    },
    serviceAccount: {
      name: 'bucket',
      annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/soundpost' },
    },
  },
  'a volume that all nodes share': {
    secret: made,
    storage: { kind: 'volume', volume: { accessMode: 'ReadWriteMany', size: '1Ti', storageClass: 'nfs' } },
  },
  'a claim of one’s own': { secret: made, storage: { volume: { existingClaim: 'my-claim' } } },
  'ingress with TLS': {
    secret: made,
    ingress: {
      enabled: true,
      className: 'nginx',
      host: 'soundpost.example',
      gatewayHost: 'gateway.soundpost.example',
      tlsSecret: 'soundpost-tls',
      annotations: { 'cert-manager.io/cluster-issuer': 'letsencrypt' },
    },
  },
  'ingress behind TLS of others': {
    secret: made,
    publicUrl: 'https://soundpost.example/audio',
    trustProxy: 2,
    ingress: { enabled: true, host: 'soundpost.example' },
  },
  HTTPRoutes: {
    secret: made,
    httpRoute: {
      enabled: true,
      parentRefs: [{ name: 'public', namespace: 'gateways', sectionName: 'https' }],
      host: 'soundpost.example',
      gatewayHost: 'gateway.soundpost.example',
    },
  },
  hpa: {
    secret: made,
    api: { autoscaling: { kind: 'hpa' } },
    worker: { concurrency: 4, autoscaling: { kind: 'hpa', minReplicas: 1, maxReplicas: 5 } },
  },
  'keda, with a PodMonitor': {
    secret: made,
    worker: { concurrency: 2, downloadsAhead: 3, autoscaling: { kind: 'keda' } },
    metrics: {
      podMonitor: { enabled: true, labels: { release: 'kube-prometheus-stack' } },
      rules: { enabled: true, labels: { release: 'kube-prometheus-stack' } },
      dashboard: { enabled: true, annotations: { grafana_folder: 'Soundpost' } },
    },
  },
  'no network policies': { secret: made, networkPolicy: { enabled: false } },
  'strong sandbox': { secret: made, sandbox: { userNamespace: true, runtimeClassName: 'kata' } },
  'no gateway': {
    secret: made,
    gateway: { enabled: false },
    config: { GATEWAY_URL: 'https://gateway.example' },
  },
  'everything else': {
    secret: { existingSecret: 'my-secret' },
    fullnameOverride: 'sp',
    image: { repository: 'registry.example:5000/team/soundpost', tag: '1.2.3', pullPolicy: 'Always' },
    imagePullSecrets: [{ name: 'registry' }],
    config: {
      OUTBOUND_PORTS: '443, 8443',
      MAX_INPUT_BYTES: 5_368_709_120,
      OTEL_TRACES_SAMPLER_ARG: 0.25,
      REDIS_CA_FILE: '/ca/ca.pem',
    },
    redis: { storageClass: 'fast' },
    storage: bucket,
    api: { replicas: 3 },
    worker: {
      shutdownSeconds: 120,
      resources: { requests: { cpu: '1500m', memory: '1Gi' }, limits: { memory: '2Gi' } },
      scratchStorageClass: 'fast',
      podAnnotations: { 'example.com/a': 'c', 'example.com/worker': 'd' },
      nodeSelector: { pool: 'audio' },
      tolerations: [{ key: 'spot', operator: 'Exists' }],
      priorityClassName: 'low',
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'gpu', operator: 'DoesNotExist' }] }],
          },
        },
      },
      topologySpreadConstraints: [{ maxSkew: 2, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      extraEnv: [{ name: 'OUTBOUND_PROXY', valueFrom: { secretKeyRef: { name: 'mine', key: 'proxy' } } }],
      extraEnvFrom: [{ secretRef: { name: 'a-whole-one' } }],
    },
    gateway: { ports: [5222], publicUrl: 'https://gateway.example' },
    networkPolicy: {
      except: ['198.41.0.0/24', '2a00:1450::/32'],
      monitoringNamespace: 'prometheus',
      extraEgress: [toRedis],
    },
    serviceAccount: { create: false, name: 'mine' },
    podDisruptionBudgets: false,
    podAnnotations: { 'example.com/a': 'b' },
    podLabels: { team: 'audio' },
    nodeSelector: { 'kubernetes.io/arch': 'amd64' },
    tolerations: [{ key: 'audio', operator: 'Exists' }],
    priorityClassName: 'batch',
    extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
    extraVolumeMounts: [{ name: 'ca', mountPath: '/ca', readOnly: true }],
  },
};
