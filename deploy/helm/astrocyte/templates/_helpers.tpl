{{- define "astrocyte.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "astrocyte.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "astrocyte.labels" -}}
{{ include "astrocyte.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* "true" where the memories are in PostgreSQL, else empty. */ -}}
{{- define "astrocyte.shared" -}}
{{- if eq (dig "store" "backend" "sqlite" .Values.config) "postgres" -}}true{{- end -}}
{{- end -}}

{{- define "astrocyte.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not (include "astrocyte.shared" .)) -}}
{{- fail "replicas: more than 1 needs config.store.backend: postgres, since a data directory belongs to one server" -}}
{{- end -}}
{{- if and (not .Values.tls.secretName) (not .Values.insecure) -}}
{{- fail "tls.secretName is empty: name a secret of the type kubernetes.io/tls, or set insecure: true on a private network" -}}
{{- end -}}
{{- end -}}

{{- /* The configuration: that of the values, with the paths of the certificate. */ -}}
{{- define "astrocyte.config" -}}
{{- $server := dict -}}
{{- if .Values.tls.secretName -}}
{{- $server = dict "tls_cert_file" "/etc/astrocyte-tls/tls.crt" "tls_key_file" "/etc/astrocyte-tls/tls.key" -}}
{{- end -}}
{{- mergeOverwrite (dict "server" $server) (deepCopy .Values.config) | toYaml -}}
{{- end -}}
