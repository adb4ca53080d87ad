{{- define "soundpost.name" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains "soundpost" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-soundpost" (.Release.Name | trunc 30 | trimSuffix "-") }}
{{- end }}
{{- end }}

{{/* Of all pods of the release but its Redis; never changes, since selectors cannot. */}}
{{- define "soundpost.selector" -}}
app.kubernetes.io/name: soundpost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "soundpost.redisSelector" -}}
app.kubernetes.io/name: redis
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "soundpost.labels" -}}
{{ include "soundpost.selector" . }}
{{ include "soundpost.managed" . }}
{{- end }}

{{- define "soundpost.managed" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "soundpost.image" -}}
{{- with .Values.image.digest }}{{ $.Values.image.repository }}@{{ . }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "soundpost.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "soundpost.name" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "soundpost.secret" -}}
{{ .Values.secret.existingSecret | default (include "soundpost.name" .) }}
{{- end }}

{{/* "true" where the chart's own Redis runs. */}}
{{- define "soundpost.ownRedis" -}}
{{- if and .Values.redis.enabled (not .Values.redis.url) (not .Values.redis.existingSecret) }}true{{ end }}
{{- end }}

{{/* "true" where one volume that a single node may hold ties all pods to that node. */}}
{{- define "soundpost.oneNode" -}}
{{- if and (eq .Values.storage.kind "volume") (ne .Values.storage.volume.accessMode "ReadWriteMany") }}true{{ end }}
{{- end }}

{{/* Of one of the hosts behind the ingress or the HTTPRoute. Takes `context` and `host`, the name of the value; empty where neither has one. */}}
{{- define "soundpost.address" -}}
{{- $ingress := .context.Values.ingress }}
{{- $route := .context.Values.httpRoute }}
{{- if and $ingress.enabled (get $ingress .host) }}{{ ternary "https" "http" (ne $ingress.tlsSecret "") }}://{{ get $ingress .host }}
{{- else if and $route.enabled (get $route .host) }}{{ ternary "https" "http" $route.tls }}://{{ get $route .host }}
{{- end }}
{{- end }}

{{- define "soundpost.publicUrl" -}}
{{- .Values.publicUrl | default (include "soundpost.address" (dict "context" . "host" "host")) | default "http://127.0.0.1:8080" }}
{{- end }}

{{- define "soundpost.gatewayPublicUrl" -}}
{{- .Values.gateway.publicUrl | default (include "soundpost.address" (dict "context" . "host" "gatewayHost")) | default "http://127.0.0.1:8081" }}
{{- end }}

{{/* Variables that are no secret and the same for all processes. */}}
{{- define "soundpost.config" -}}
{{- $name := include "soundpost.name" . }}
{{- $config := dict
  "HOST" "0.0.0.0"
  "PUBLIC_URL" (include "soundpost.publicUrl" .)
  "GATEWAY_PUBLIC_URL" (include "soundpost.gatewayPublicUrl" .)
  "GATEWAY_EVENTS_URL" (printf "http://%s-api:8080/hooks/gateway" $name)
  "SANDBOX" .Values.sandbox.mode
}}
{{- if .Values.gateway.enabled }}{{ $_ := set $config "GATEWAY_URL" (printf "http://%s-gateway:8081" $name) }}{{ end }}
{{- $proxies := .Values.trustProxy }}
{{- if kindIs "invalid" $proxies }}{{ $proxies = ternary 1 0 (or .Values.ingress.enabled .Values.httpRoute.enabled) }}{{ end }}
{{- $_ := set $config "TRUST_PROXY" (int $proxies) }}
{{- with .Values.redis.url }}{{ $_ := set $config "REDIS_URL" . }}{{ end }}
{{- if eq .Values.storage.kind "s3" }}
{{- with .Values.storage.s3 }}
{{- $_ := set $config "STORAGE_URL" .url }}
{{- with .region }}{{ $_ := set $config "S3_REGION" . }}{{ end }}
{{- with .endpoint }}{{ $_ := set $config "S3_ENDPOINT" . }}{{ end }}
{{- with .publicEndpoint }}{{ $_ := set $config "S3_PUBLIC_ENDPOINT" . }}{{ end }}
{{- end }}
{{- end }}
{{- range $variable, $value := merge (deepCopy .Values.config) $config }}
{{- /* Numbers of YAML are floating-point: 5368709120 would be written 5.36870912e+09. */}}
{{ $variable }}: {{ ternary (printf "%.0f" $value) (toString $value) (and (kindIs "float64" $value) (eq (floor $value) $value)) | quote }}
{{- end }}
{{- end }}

{{/* Where pods of a part run: its own values, else those of all parts. Takes `context` and `component`. */}}
{{- define "soundpost.scheduling" -}}
{{- $values := .context.Values }}
{{- $part := get $values .component }}
{{- with $part.priorityClassName | default $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $part.nodeSelector | default $values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations | default $values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A part's affinity. Where one volume ties all pods to a node, its term is added, as storage.volume.accessMode says. */}}
{{- define "soundpost.affinity" -}}
{{- $affinity := deepCopy (get .context.Values .component).affinity }}
{{- if include "soundpost.oneNode" .context }}
{{- $labels := include "soundpost.selector" .context | fromYaml }}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) }}
{{- $pods := $affinity.podAffinity | default dict }}
{{- $required := append ($pods.requiredDuringSchedulingIgnoredDuringExecution | default list) $term }}
{{- $affinity = set $affinity "podAffinity" (set $pods "requiredDuringSchedulingIgnoredDuringExecution" $required) }}
{{- end }}
{{- with $affinity }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* How a part's pods spread: its own rules, whose labelSelector is the part's where they have none; else over nodes and zones as far as that goes. */}}
{{- define "soundpost.spread" -}}
{{- $labels := set (include "soundpost.selector" .context | fromYaml) "app.kubernetes.io/component" .component }}
{{- $rules := (get .context.Values .component).topologySpreadConstraints }}
{{- if and (not $rules) (not (include "soundpost.oneNode" .context)) }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
{{- $rules = append $rules (dict "maxSkew" 1 "topologyKey" . "whenUnsatisfiable" "ScheduleAnyway") }}
{{- end }}
{{- end }}
{{- range $rules }}
- {{ merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" $labels)) | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}

{{/* Of each Deployment, from `metadata` to the containers. Takes `context` and `component`. */}}
{{- define "soundpost.template" -}}
{{- $part := get .context.Values .component -}}
metadata:
  labels:
    {{- include "soundpost.selector" .context | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with .context.Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # Pods are replaced when what they read changes.
    checksum/config: {{ include "soundpost.config" .context | sha256sum }}
    checksum/secret: {{ toYaml .context.Values.secret | sha256sum }}
    {{- with merge (deepCopy $part.podAnnotations) .context.Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "soundpost.serviceAccount" .context }}
  automountServiceAccountToken: false
  # Else a Service "api" would set API_PORT to "tcp://…".
  enableServiceLinks: false
  {{- with .context.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "soundpost.scheduling" . }}{{ . | trim | nindent 2 }}{{ end }}
  {{- if ne .component "api" }}
  {{- if .context.Values.sandbox.userNamespace }}
  hostUsers: false
  {{- end }}
  {{- with .context.Values.sandbox.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with include "soundpost.affinity" . | trim }}
  affinity: {{ . | nindent 4 }}
  {{- end }}
  {{- with include "soundpost.spread" . | trim }}
  topologySpreadConstraints: {{ . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Of each container: what it reads, its rights, and where it writes. Takes `context`, `component`, and `more` variables of its own, by name. */}}
{{- define "soundpost.container" -}}
{{- include "soundpost.image-and-rights" .context }}
env: {{ include "soundpost.env" . | trim | nindent 2 }}
envFrom:
  - configMapRef:
      name: {{ include "soundpost.name" .context }}
  {{- with (get .context.Values .component).extraEnvFrom }}{{ toYaml . | nindent 2 }}{{ end }}
resources: {{ toYaml .resources | nindent 2 }}
{{- end }}

{{- define "soundpost.image-and-rights" -}}
image: {{ include "soundpost.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
# Why a process refused to start, such as marks that differ, in `kubectl describe pod`.
terminationMessagePolicy: FallbackToLogsOnError
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Secrets that a process reads: `secretReaders` of packages/kit/src/settings/environment.ts, which a test compares. */}}
{{- define "soundpost.secretVariables" -}}
SECRET_KEY METRICS_TOKEN OTEL_EXPORTER_OTLP_HEADERS OUTBOUND_PROXY
{{- if eq .context.Values.storage.kind "s3" }} S3_ACCESS_KEY_ID S3_SECRET_ACCESS_KEY{{ end }}
{{- if eq .component "api" }} ADMIN_KEY BOOTSTRAP_API_KEY GATEWAY_EVENTS_TOKEN{{ else }} GATEWAY_API_KEY TRANSCRIBER_API_KEY{{ end }}
{{- end }}

{{/* A name of the part's extraEnv takes the place of the chart's. */}}
{{- define "soundpost.env" -}}
{{- $values := .context.Values }}
{{- $secret := include "soundpost.secret" .context }}
{{- $env := list }}
{{- if include "soundpost.ownRedis" .context }}
{{- $env = append $env (dict "name" "REDIS_PASSWORD" "valueFrom" (dict "secretKeyRef" (dict "name" $secret "key" "REDIS_PASSWORD"))) }}
{{- $env = append $env (dict "name" "REDIS_URL" "value" (printf "redis://:$(REDIS_PASSWORD)@%s-redis:6379" (include "soundpost.name" .context))) }}
{{- else if $values.redis.existingSecret }}
{{- $env = append $env (dict "name" "REDIS_URL" "valueFrom" (dict "secretKeyRef" (dict "name" $values.redis.existingSecret "key" $values.redis.existingSecretKey))) }}
{{- end }}
{{- range splitList " " (include "soundpost.secretVariables" . | trim) }}
{{- $env = append $env (dict "name" . "valueFrom" (dict "secretKeyRef" (dict "name" $secret "key" . "optional" (ne . "SECRET_KEY")))) }}
{{- end }}
{{- range $name, $value := .more }}{{ $env = append $env (dict "name" $name "value" (toString $value)) }}{{ end }}
{{- $own := (get $values .component).extraEnv }}
{{- $names := list }}
{{- range $own }}{{ $names = append $names .name }}{{ end }}
{{- range $env }}
{{- if not (has .name $names) }}
- {{ toYaml . | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- with $own }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "soundpost.mounts" -}}
- name: data
  mountPath: /data
- name: tmp
  mountPath: /tmp
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Takes `context` and `scratch`: how much a folder may take that is no volume. */}}
{{- define "soundpost.volumes" -}}
- name: data
  {{- if eq .context.Values.storage.kind "volume" }}
  persistentVolumeClaim:
    claimName: {{ .context.Values.storage.volume.existingClaim | default (printf "%s-data" (include "soundpost.name" .context)) }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .scratch }}
  {{- end }}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- with .context.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The public internet, as packages/outbound/src/address-table.ts has it. */}}
{{- define "soundpost.public" -}}
- ipBlock:
    cidr: 0.0.0.0/0
    except:
      - 0.0.0.0/8
      - 10.0.0.0/8
      - 100.64.0.0/10
      - 127.0.0.0/8
      - 169.254.0.0/16
      - 172.16.0.0/12
      - 192.0.0.0/24
      - 192.0.2.0/24
      - 192.31.196.0/24
      - 192.52.193.0/24
      - 192.88.99.0/24
      - 192.168.0.0/16
      - 192.175.48.0/24
      - 198.18.0.0/15
      - 198.51.100.0/24
      - 203.0.113.0/24
      - 224.0.0.0/4
      - 240.0.0.0/4
      - 168.63.129.16/32
      {{- range .Values.networkPolicy.except }}{{ if not (contains ":" .) }}
      - {{ . }}
      {{- end }}{{ end }}
- ipBlock:
    cidr: 2000::/3
    except:
      - 2001::/23
      - 2001:db8::/32
      - 2002::/16
      - 2620:4f:8000::/48
      - 3fff::/20
      {{- range .Values.networkPolicy.except }}{{ if contains ":" . }}
      - {{ . }}
      {{- end }}{{ end }}
{{- end }}

{{/* Values that each are right, and make no sense together. */}}
{{- define "soundpost.refusals" -}}
{{- $redis := .Values.redis }}
{{- if and $redis.url $redis.existingSecret }}
{{- fail "redis.url and redis.existingSecret both say where Redis is: leave one of them out" }}
{{- end }}
{{- if and (not $redis.enabled) (not $redis.url) (not $redis.existingSecret) }}
{{- fail "redis.enabled is false, and nothing says where Redis is: set redis.url or redis.existingSecret" }}
{{- end }}
{{- if and .Values.networkPolicy.enabled (not (include "soundpost.ownRedis" .)) (not .Values.networkPolicy.extraEgress) }}
{{- fail "the network policies keep pods from a Redis outside: say where it is in networkPolicy.extraEgress, or set networkPolicy.enabled=false" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress.enabled needs ingress.host, the name of the API" }}
{{- end }}
{{- if and (or .Values.ingress.gatewayHost .Values.httpRoute.gatewayHost) (not .Values.gateway.enabled) }}
{{- fail "gatewayHost names a gateway that gateway.enabled=false leaves out" }}
{{- end }}
{{- if and .Values.httpRoute.enabled (not (and .Values.httpRoute.host .Values.httpRoute.parentRefs)) }}
{{- fail "httpRoute.enabled needs httpRoute.host, the name of the API, and httpRoute.parentRefs, the Gateways that it is for" }}
{{- end }}
{{- if and (eq .Values.storage.kind "s3") (not .Values.storage.s3.url) }}
{{- fail "storage.kind is s3: set storage.s3.url, such as s3://bucket/prefix" }}
{{- end }}
{{- range list "api" "worker" }}
{{- $scaling := (get $.Values .).autoscaling }}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) }}
{{- fail (printf "%s.autoscaling.minReplicas is more than maxReplicas" .) }}
{{- end }}
{{- end }}
{{- if and .Values.secret.existingSecret .Values.secret.values }}
{{- fail "secret.values belong to the Secret that the chart makes: put them into secret.existingSecret" }}
{{- end }}
{{- end }}
