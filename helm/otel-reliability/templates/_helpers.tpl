{{/* The name of everything: the release's, with the chart's where it does not hold that. */}}
{{- define "otel-reliability.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end -}}
{{- $name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{/* The labels by which the pods of this release are selected. */}}
{{- define "otel-reliability.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "otel-reliability.labels" -}}
{{ include "otel-reliability.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The workloads of the mode as YAML: component → arguments, ports, replicas, resources, seconds to stop. */}}
{{- define "otel-reliability.workloads" -}}
{{- if eq .Values.mode "kafka" }}
assemble: {args: [kafka, assemble], ports: {ui: 8080, metrics: 9464}, grace: 30, values: {{ toJson .Values.kafka.assemble }}}
aggregate: {args: [kafka, aggregate], ports: {ui: 8080, metrics: 9464}, grace: 30, values: {{ toJson .Values.kafka.aggregate }}}
{{- else }}
service:
  args: [serve]
  ports: {otlp-grpc: 4317, otlp-http: 4318, ui: 8080, metrics: 9464}
  grace: 20
  values: {{ toJson (pick .Values "replicas" "resources") }}
{{- end }}
{{- end }}
