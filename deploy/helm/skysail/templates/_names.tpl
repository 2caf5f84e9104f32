{{- define "skysail.labels" -}}
app.kubernetes.io/name: skysail-scheduler
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
