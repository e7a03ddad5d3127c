// Pods as the operator makes them, with changes that a sandbox must refuse.
import type { Manifest } from '../../../lib/kubernetes/index.ts';

export type Namespace = 'moorage-apps' | 'moorage-builds';
export type Fields = Readonly<Record<string, unknown>>;

export const ordinary = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
export const limits = { cpu: '1', memory: '256Mi' };
export const container = (name: string, changes: Fields = {}): Fields => ({
  name,
  image: 'example:1',
  resources: { limits },
  securityContext: ordinary,
  ...changes,
});

/** A pod as the operator makes it for an app. */
export function appPod(changes: Fields = {}): Fields {
  const securityContext = {
    ...ordinary,
    capabilities: {
      drop: ['ALL'],
      add: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID', 'KILL', 'NET_BIND_SERVICE'],
    },
  };
  return {
    hostUsers: false,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      container('app', {
        securityContext,
        env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'one' } } }],
        ports: [{ containerPort: 8080 }],
      }),
    ],
    ...changes,
  };
}

/** A pod as the operator makes it for a pipeline. */
export function pipelinePod(changes: { clone?: Fields; build?: Fields; pod?: Fields } = {}): Fields {
  const plain = { securityContext: { ...ordinary, runAsUser: 0, seccompProfile: { type: 'RuntimeDefault' } } };
  const buildkit = {
    runAsUser: 0,
    procMount: 'Unmasked',
    seccompProfile: { type: 'Unconfined' },
    capabilities: { add: ['SYS_ADMIN', 'NET_ADMIN'] },
  };
  return {
    hostUsers: false,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    restartPolicy: 'Never',
    containers: [
      container('clone', { ...plain, ...changes.clone }),
      container('review', plain),
      container('build', {
        securityContext: buildkit,
        env: [{ name: 'MOORAGE_PUSH_TOKEN', value: 'token' }],
        ...changes.build,
      }),
    ],
    volumes: [{ name: 'workspace', emptyDir: {} }],
    ...changes.pod,
  };
}

export const createNamedPod = (
  namespace: Namespace,
  name: string,
  spec: Fields,
  annotations: Record<string, string> = {},
): Manifest => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, annotations },
  spec,
});
