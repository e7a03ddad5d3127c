{{/* What the services behind tools share: where each answers, and how each runs. */}}

{{/* Base URL of a service, empty where it is off: (list $ "gotenberg"). */}}
{{- define "moorage.toolUrl" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $tool := index $root.Values.tools $name -}}
{{- if $tool.url }}{{ $tool.url }}{{ else if $tool.enabled }}{{ printf "http://moorage-%s.%s.svc.cluster.local" $name $root.Release.Namespace }}{{ end }}
{{- end }}

{{/* Whether a service runs with the release: not empty when it does. */}}
{{- define "moorage.toolRuns" -}}
{{- $tool := index (index . 0).Values.tools (index . 1) -}}
{{- if and $tool.enabled (not $tool.url) }}yes{{ end }}
{{- end }}

{{/* TCP port of the pods of a service. */}}
{{- define "moorage.toolPort" -}}
{{ index (dict "searxng" 8080 "gotenberg" 3000 "gotenberg-proxy" 3128 "languagetool" 8010 "speech" 8000 "pdftranslator" 8000) . }}
{{- end }}

{{/* Their addresses, for the API. */}}
{{- define "moorage.toolEnv" -}}
{{- $variables := dict "searxng" "MOORAGE_SEARXNG_URL" "gotenberg" "MOORAGE_GOTENBERG_URL" "languagetool" "MOORAGE_LANGUAGETOOL_URL" "speech" "MOORAGE_SPEECH_URL" "pdftranslator" "MOORAGE_PDF_TRANSLATOR_URL" -}}
{{- range $name, $variable := $variables }}
{{- with include "moorage.toolUrl" (list $ $name) }}
- {name: {{ $variable }}, value: {{ . | quote }}}
{{- else }}
{{- with (index $.Values.tools $name).offBecause }}
- {name: {{ $variable | replace "_URL" "_OFF_BECAUSE" }}, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The API's way to them: pods of the release, or of the namespace that was named. */}}
{{- define "moorage.egressTools" -}}
{{- range $name, $tool := .Values.tools }}
{{- if include "moorage.toolRuns" (list $ $name) }}
- to:
    - podSelector:
        matchLabels:
          {{- include "moorage.selector" (list $ $name) | nindent 10 }}
  ports:
    - {protocol: TCP, port: {{ include "moorage.toolPort" $name }}}
{{- else if and $tool.url $tool.namespaceLabels }}
- to:
    - namespaceSelector:
        matchLabels:
          {{- toYaml $tool.namespaceLabels | nindent 10 }}
  ports:
    - {protocol: TCP, port: {{ $tool.port }}}
{{- end }}
{{- end }}
{{- end }}

{{/* Egress to the public internet, and to DNS for it: (list $ (list 80 443)). */}}
{{- define "moorage.egressWeb" -}}
{{- $root := index . 0 -}}
{{ include "moorage.egressDns" $root }}
- to:
    {{- include "moorage.publicInternet" (splitList "," (include "moorage.closedCidrs" $root)) | nindent 4 }}
  ports:
    {{- range index . 1 }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}

{{/*
One service: Deployment, Service and NetworkPolicy.
  root, name; values (replicas, resources, image); servicePort; user; from: the component that may reach it;
  home: where its image keeps what it reads at run time; /tmp when left out
  health: path of its probe, or none for a mere connection
  warm: path that makes it load what a first caller would wait for, asked until it answers; config: what a change of rolls it out
  args, command, env, mounts, volumes, init: as Kubernetes has them
  egress: rules as text, none when empty
*/}}
{{- define "moorage.toolWorkload" -}}
{{- $root := .root -}}
{{- $port := include "moorage.toolPort" .name -}}
{{- $selector := include "moorage.selector" (list $root .name) -}}
{{- $probe := ternary (dict "httpGet" (dict "path" .health "port" "http")) (dict "tcpSocket" (dict "port" "http")) (not (empty .health)) -}}
{{- $start := ternary $probe (dict "httpGet" (dict "path" .warm "port" "http")) (empty .warm) -}}
{{- $security := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- $mounts := concat (list (dict "name" "tmp" "mountPath" "/tmp")) (default list .mounts) -}}
{{- $env := concat (list (dict "name" "HOME" "value" (default "/tmp" .home))) (default list .env) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: moorage-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" $root | nindent 4 }}
    {{- $selector | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  revisionHistoryLimit: 3
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "moorage.labels" $root | nindent 8 }}
        {{- $selector | nindent 8 }}
      {{- with .config }}
      annotations:
        moorage.dev/config: {{ . | sha256sum | trunc 16 | quote }}
      {{- end }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      hostUsers: {{ $root.Values.hostUsers }}
      terminationGracePeriodSeconds: 60
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: {{ .user }}
        runAsGroup: {{ .user }}
        fsGroup: {{ .user }}
        seccompProfile: {type: RuntimeDefault}
      {{- with .init }}
      initContainers:
        - name: prepare
          image: {{ $.values.image | quote }}
          imagePullPolicy: {{ $root.Values.imagePullPolicy }}
          command: {{ toJson . }}
          env: {{ toJson $env }}
          resources: {{ toJson $.values.resources }}
          securityContext: {{ toJson $security }}
          volumeMounts: {{ toJson $mounts }}
      {{- end }}
      containers:
        - name: {{ .name }}
          image: {{ .values.image | quote }}
          imagePullPolicy: {{ $root.Values.imagePullPolicy }}
          {{- with .command }}
          command: {{ toJson . }}
          {{- end }}
          {{- with .args }}
          args:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          terminationMessagePolicy: FallbackToLogsOnError
          ports:
            - {name: http, containerPort: {{ $port }}}
          env:
            {{- toYaml (concat $env (default list .mainEnv)) | nindent 12 }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            {{- toYaml $security | nindent 12 }}
          # Java, Python and their models take their time.
          startupProbe: {{ toJson (merge (dict "periodSeconds" 2 "failureThreshold" 150 "timeoutSeconds" (ternary 5 60 (empty .warm))) $start) }}
          livenessProbe: {{ toJson (merge (dict "periodSeconds" 20 "failureThreshold" 6 "timeoutSeconds" 10) $probe) }}
          readinessProbe: {{ toJson (merge (dict "periodSeconds" 5 "failureThreshold" 3 "timeoutSeconds" 5) $probe) }}
          volumeMounts:
            {{- toYaml $mounts | nindent 12 }}
      volumes:
        - name: tmp
          emptyDir: {sizeLimit: 2Gi}
        {{- with .volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: moorage-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" $root | nindent 4 }}
    {{- $selector | nindent 4 }}
spec:
  selector:
    {{- $selector | nindent 4 }}
  ports:
    - {name: http, port: {{ default 80 .servicePort }}, targetPort: http}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: moorage-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "moorage.labels" $root | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- $selector | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - from:
        - podSelector:
            matchLabels:
              {{- include "moorage.selector" (list $root .from) | nindent 14 }}
      ports:
        - {protocol: TCP, port: {{ $port }}}
  egress: {{- if not .egress }} []{{ else }}
    {{- .egress | nindent 4 }}
  {{- end }}
{{- end }}
