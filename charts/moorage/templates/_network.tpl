{{/* Rules that several NetworkPolicies share; each is a list item. */}}

{{- define "moorage.egressDns" -}}
- to:
    - namespaceSelector:
        matchLabels:
          {{- toYaml .Values.network.dns.namespaceLabels | nindent 10 }}
      podSelector:
        matchLabels:
          {{- toYaml .Values.network.dns.podLabels | nindent 10 }}
  ports:
    {{- range .Values.network.dns.ports }}
    - {protocol: UDP, port: {{ . }}}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}

{{/* The git server inside the cluster, where there is one. */}}
{{- define "moorage.egressGit" -}}
{{- with .Values.git.namespaceLabels -}}
- to:
    - namespaceSelector:
        matchLabels:
          {{- toYaml . | nindent 10 }}
  ports:
    - {protocol: TCP, port: {{ $.Values.git.port }}}
{{- end }}
{{- end }}

{{/* Git servers of private repositories, which are read over SSH. */}}
{{- define "moorage.egressSsh" -}}
{{- with .Values.git.sshPorts -}}
- to:
    {{- range $.Values.git.sshCidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- else }}
    {{- include "moorage.publicInternet" (splitList "," (include "moorage.closedCidrs" $)) | nindent 4 }}
    {{- end }}
  ports:
    {{- range . }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}
{{- end }}

{{/* Policies speak of the address after the Service's is replaced, so the API server is named by its real one. */}}
{{- define "moorage.egressApiServer" -}}
- ports:
    {{- range .Values.network.apiServer.ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with .Values.network.apiServer.cidrs }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}

{{/* All addresses but the given ones. */}}
{{- define "moorage.publicInternet" -}}
{{- $v4 := list }}{{ $v6 := list }}
{{- range . }}{{ if contains ":" . }}{{ $v6 = append $v6 . }}{{ else }}{{ $v4 = append $v4 . }}{{ end }}{{ end -}}
- ipBlock:
    cidr: 0.0.0.0/0
    except: {{ toJson $v4 }}
- ipBlock:
    cidr: ::/0
    except: {{ toJson $v6 }}
{{- end }}

{{- define "moorage.ingressMetrics" -}}
{{- with .Values.network.metricsNamespaceLabels -}}
- from:
    - namespaceSelector:
        matchLabels:
          {{- toYaml . | nindent 10 }}
  ports:
    - {protocol: TCP, port: 9090}
{{- end }}
{{- end }}

{{/* The model router: pods of a namespace, or the public internet. */}}
{{- define "moorage.egressRouter" -}}
{{- if .Values.models.router.baseUrl -}}
- ports:
    - {protocol: TCP, port: {{ .Values.models.router.port }}}
  to:
    {{- if .Values.models.router.namespaceLabels }}
    - namespaceSelector:
        matchLabels:
          {{- toYaml .Values.models.router.namespaceLabels | nindent 10 }}
    {{- else }}
    {{- include "moorage.publicInternet" (splitList "," (include "moorage.closedCidrs" .)) | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}

{{/* The SMTP server: the addresses that were given, or the public internet. */}}
{{- define "moorage.egressMail" -}}
{{- if .Values.mail.urlSecret -}}
- ports:
    - {protocol: TCP, port: {{ .Values.mail.port }}}
  to:
    {{- range .Values.mail.cidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- else }}
    {{- include "moorage.publicInternet" (splitList "," (include "moorage.closedCidrs" .)) | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}

{{/* Forges that are not on the public internet, which the API reaches anyway. */}}
{{- define "moorage.egressSignIn" -}}
{{- if and .Values.signIn.providersSecret .Values.signIn.cidrs -}}
- ports:
    - {protocol: TCP, port: {{ .Values.signIn.port }}}
  to:
    {{- range .Values.signIn.cidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
{{- end }}
{{- end }}

{{/* The database: our own pod, or the addresses that were given. */}}
{{- define "moorage.egressDatabase" -}}
{{- if .Values.database.urlSecret -}}
- ports:
    - {protocol: TCP, port: {{ .Values.database.port }}}
  {{- with .Values.database.cidrs }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- else if .Values.postgres.enabled -}}
- ports:
    - {protocol: TCP, port: 5432}
  to:
    - podSelector:
        matchLabels:
          {{- include "moorage.selector" (list . "postgres") | nindent 10 }}
{{- end }}
{{- end }}
