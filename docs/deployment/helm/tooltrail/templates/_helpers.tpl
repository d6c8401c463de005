{{- define "tooltrail.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end -}}
{{- $name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "tooltrail.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tooltrail.labels" -}}
{{ include "tooltrail.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "tooltrail.pod" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "tooltrail.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Variables of all processes. The address of each database role is in a file, not in the environment. */}}
{{- define "tooltrail.env" -}}
- {name: TOOLTRAIL_HOSTS, value: {{ join "," .Values.hosts | quote }}}
- {name: TOOLTRAIL_HTTPS, value: {{ .Values.https | quote }}}
- {name: TOOLTRAIL_PROXIES, value: {{ .Values.proxies | quote }}}
- {name: DATABASE_URL_FILE, value: /run/secrets/database/DATABASE_URL}
- {name: TOOLTRAIL_SECRET_KEY_FILE, value: /run/secrets/web/TOOLTRAIL_SECRET_KEY}
- {name: TOOLTRAIL_ENCRYPTION_KEYS, value: /run/secrets/encryption/encryption-keys}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The secret with only those addresses that a kind of pod needs: (list $ "DATABASE_URL" …). */}}
{{- define "tooltrail.databaseVolume" -}}
{{- $root := first . -}}
- name: database
  secret:
    secretName: {{ $root.Values.secrets.database }}
    items:
      {{- range rest . }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
- name: web
  secret: {secretName: {{ $root.Values.secrets.web }}}
- name: encryption
  secret: {secretName: {{ $root.Values.secrets.encryption }}, defaultMode: 0440, optional: true}
- name: tmp
  emptyDir: {}
{{- with $root.Values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tooltrail.mounts" -}}
- {name: database, mountPath: /run/secrets/database, readOnly: true}
- {name: web, mountPath: /run/secrets/web, readOnly: true}
- {name: encryption, mountPath: /run/secrets/encryption, readOnly: true}
- {name: tmp, mountPath: /tmp}
- {name: var, mountPath: /var/lib/tooltrail}
{{- with .Values.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "tooltrail.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end }}

{{/* What both steps of the migrations have in common. */}}
{{- define "tooltrail.migration" -}}
{{ include "tooltrail.container" . }}
env:
  {{- include "tooltrail.env" . | nindent 2 }}
  - {name: DATABASE_OWNER_URL_FILE, value: /run/secrets/database/DATABASE_OWNER_URL}
resources: {{ toJson .Values.migrations.resources }}
volumeMounts:
  {{- include "tooltrail.mounts" . | nindent 2 }}
{{- end }}

{{- define "tooltrail.worker" -}}
{{ include "tooltrail.container" . }}
env:
  {{- include "tooltrail.env" . | nindent 2 }}
  - {name: DATABASE_OWNER_URL_FILE, value: /run/secrets/database/DATABASE_OWNER_URL}
  - {name: DATABASE_KEEPER_URL_FILE, value: /run/secrets/database/DATABASE_KEEPER_URL}
  - {name: TOOLTRAIL_LEDGER_KEYS, value: /run/secrets/ledger/signing-keys.json}
resources: {{ toJson .Values.worker.resources }}
volumeMounts:
  {{- include "tooltrail.mounts" . | nindent 2 }}
  - {name: ledger, mountPath: /run/secrets/ledger, readOnly: true}
{{- end }}
