{{/* Names, labels and pieces that several templates share. */}}

{{- define "moorage.labels" -}}
app.kubernetes.io/part-of: moorage
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Labels that select the pods of one component: (list $ "operator"). */}}
{{- define "moorage.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: moorage
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "moorage.gatewayNamespace" -}}
{{ default .Release.Namespace .Values.gateway.namespace }}
{{- end }}

{{- define "moorage.appsDomain" -}}
{{ default .Values.baseDomain .Values.appsDomain }}
{{- end }}

{{/* A map of labels as k=v,k=v, as the operator reads it. */}}
{{- define "moorage.labelList" -}}
{{- $pairs := list -}}
{{- range $key, $value := . }}{{- $pairs = append $pairs (printf "%s=%s" $key $value) -}}{{- end -}}
{{- join "," $pairs -}}
{{- end }}

{{/* Images of backing services that are set, as type=image. */}}
{{- define "moorage.serviceImages" -}}
{{- $pairs := list -}}
{{- range $type, $image := .Values.services.images }}{{- if $image }}{{- $pairs = append $pairs (printf "%s=%s" $type $image) -}}{{- end }}{{- end -}}
{{- join "," $pairs -}}
{{- end }}

{{/* What is closed in this cluster; the programs themselves know what is closed everywhere. */}}
{{- define "moorage.furtherClosedCidrs" -}}
{{- $n := .Values.network -}}
{{- join "," (concat $n.closedCidrs $n.podCidrs $n.serviceCidrs $n.nodeCidrs | uniq) -}}
{{- end }}

{{/* Every address that apps, builds and tools must not reach. */}}
{{- define "moorage.closedCidrs" -}}
{{- $n := .Values.network -}}
{{- join "," (concat (.Files.Lines "files/closed-cidrs.txt" | compact) $n.closedCidrs $n.podCidrs $n.serviceCidrs $n.nodeCidrs | uniq) -}}
{{- end }}

{{- define "moorage.saltSecret" -}}
{{ default "moorage-caller-salt" .Values.api.callerSaltSecret }}
{{- end }}

{{- define "moorage.appTokenSecret" -}}
{{ default "moorage-app-token" .Values.models.appTokenSecret }}
{{- end }}

{{/* A Secret with one value, random if none is given, made once: (list $ "name" "key" value). */}}
{{- define "moorage.keptSecret" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $key := index . 2 -}}
{{- $new := randAlphaNum 64 -}}
{{- if gt (len .) 3 }}{{ $new = index . 3 }}{{ end -}}
{{- $existing := lookup "v1" "Secret" $root.Release.Namespace $name -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" $root | nindent 4 }}
  annotations:
    helm.sh/resource-policy: keep
type: Opaque
data:
  {{ $key }}: {{ dig "data" $key ($new | b64enc) $existing }}
{{- end }}

{{/* The secret that makes the tokens builds push with. */}}
{{- define "moorage.pushTokenEnv" -}}
- name: MOORAGE_PUSH_TOKEN_SECRET
  valueFrom: {secretKeyRef: {name: {{ default "moorage-push-token" .Values.registry.pushTokenSecret }}, key: secret}}
{{- end }}

{{/* By which the activator knows requests of the platform itself. */}}
{{- define "moorage.probeTokenEnv" -}}
- name: MOORAGE_PROBE_TOKEN
  valueFrom: {secretKeyRef: {name: {{ default "moorage-probe-token" .Values.activator.probeTokenSecret }}, key: token}}
{{- end }}

{{/* What is shown to the API with access logs and with what apps use. */}}
{{- define "moorage.meteringTokenEnv" -}}
- name: MOORAGE_METERING_TOKEN
  valueFrom: {secretKeyRef: {name: {{ default "moorage-metering" .Values.metering.tokenSecret }}, key: token}}
{{- end }}

{{/* Name of the Secret with the database URL of the API; empty where there is no database. */}}
{{- define "moorage.databaseSecret" -}}
{{- if .Values.database.urlSecret }}{{ .Values.database.urlSecret }}{{ else if .Values.postgres.enabled }}moorage-database{{ end }}
{{- end }}

{{/* Name of the Secret with the URL of the role that owns the schema; empty where the API's own role does. */}}
{{- define "moorage.migratorSecret" -}}
{{- if .Values.database.urlSecret }}{{ .Values.database.migratorUrlSecret }}{{ else if .Values.postgres.enabled }}moorage-database-migrator{{ end }}
{{- end }}

{{/* Name of the Secret with the authority of the database's certificate; may be empty. */}}
{{- define "moorage.databaseCaSecret" -}}
{{- if .Values.database.urlSecret }}{{ .Values.database.caSecret }}{{ else if .Values.postgres.enabled }}moorage-postgres-tls{{ end }}
{{- end }}

{{/* How the chart's own PostgreSQL is connected to. */}}
{{- define "moorage.databaseTls" -}}
sslmode=verify-full&sslrootcert=/etc/moorage-database/ca.crt
{{- end }}

{{/* A volume with that authority, as a list item, and its mount. */}}
{{- define "moorage.databaseCaVolume" -}}
{{- with include "moorage.databaseCaSecret" . -}}
- name: database-ca
  secret:
    secretName: {{ . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- end }}
{{- define "moorage.databaseCaMount" -}}
{{- if include "moorage.databaseCaSecret" . -}}
- {name: database-ca, mountPath: /etc/moorage-database, readOnly: true}
{{- end }}
{{- end }}

{{/* What the API's process connects with. */}}
{{- define "moorage.databaseEnv" -}}
{{- with include "moorage.databaseSecret" . -}}
- name: DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ . }}, key: url}}
{{- end }}
{{- end }}

{{/* Where the API hands over tasks; the name resolves to every pod that is ready. */}}
{{- define "moorage.workersUrl" -}}
http://moorage-workers.{{ .Release.Namespace }}.svc.cluster.local:8090
{{- end }}

{{/* Environment of operator and API; workers have next to none. */}}
{{- define "moorage.env" -}}
{{ include "moorage.logSettings" . }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
# Tools like git write to their home; the root file system is read-only.
- {name: HOME, value: /tmp}
- {name: MOORAGE_INTERNAL_PORT, value: "9090"}
- {name: MOORAGE_APPS_DOMAIN, value: {{ include "moorage.appsDomain" . | quote }}}
- name: MOORAGE_APP_TOKEN_SECRET
  valueFrom: {secretKeyRef: {name: {{ include "moorage.appTokenSecret" . }}, key: secret}}
{{- end }}

{{/* What every pod of ours has besides its containers: (list $ "operator"). */}}
{{- define "moorage.podSpec" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if eq $component "workers" }}
# They work on hostile input: no token, and another user than that of what holds secrets.
automountServiceAccountToken: false
{{- else }}
serviceAccountName: moorage-{{ $component }}
{{- end }}
enableServiceLinks: false
hostUsers: {{ $root.Values.hostUsers }}
{{- if $root.Values.priorityClasses.create }}
priorityClassName: moorage-system
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- $user := ternary 1001 1000 (eq $component "workers") }}
  runAsUser: {{ $user }}
  runAsGroup: {{ $user }}
  fsGroup: {{ $user }}
  seccompProfile: {type: RuntimeDefault}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "moorage.selector" (list $root $component) | nindent 8 }}
    # Only pods of the same revision count, so that a rollout spreads as well.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
volumes:
  - name: tmp
    {{- /* libvips keeps large pictures there in between: 200 MB at most for each of the two tasks of a workers' pod. */}}
    emptyDir: {sizeLimit: {{ ternary "512Mi" "256Mi" (eq $component "workers") }}}
  {{- if and (eq $component "api") $root.Values.models.listConfigMap }}
  - name: models
    configMap: {name: {{ $root.Values.models.listConfigMap }}}
  {{- end }}
  {{- if eq $component "api" }}
  {{- include "moorage.databaseCaVolume" $root | nindent 2 }}
  {{- end }}
{{- end }}

{{/* What every container of ours has: (list $ "operator"). */}}
{{- define "moorage.container" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
image: {{ ternary (default $root.Values.image $root.Values.workers.image) $root.Values.image (eq $component "workers") | quote }}
imagePullPolicy: {{ $root.Values.imagePullPolicy }}
terminationMessagePolicy: FallbackToLogsOnError
resources:
  {{- toYaml (ternary $root.Values.registry.proxy (index $root.Values $component) (eq $component "registry-proxy")).resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if eq $component "registry-proxy" }}
  - {name: account, mountPath: /etc/moorage/registry, readOnly: true}
  {{- end }}
  {{- if and (eq $component "api") $root.Values.models.listConfigMap }}
  - {name: models, mountPath: /etc/moorage, readOnly: true}
  {{- end }}
  {{- if eq $component "api" }}
  {{- include "moorage.databaseCaMount" $root | nindent 2 }}
  {{- end }}
# The first start may wait for the API server; after that a process that hangs is started again.
startupProbe:
  httpGet: {path: /healthz, port: internal}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: internal}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: internal}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end }}
