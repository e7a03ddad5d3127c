// Bare pods to compare with: one that only runs buildctl, one that only runs an image.
import { annotations } from '../../crds/names.ts';

interface RawBuild {
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  readonly repo: string;
  readonly commit: string;
  /** Name to push to, at the registry proxy. */
  readonly push: string;
  /** What may read the repository, and push to this name. */
  readonly tokens: { readonly git: string; readonly push: string };
}

function script({ repo, commit, push, tokens }: RawBuild): string {
  const host = push.split('/')[0] ?? '';
  const encode = (token: string): string => Buffer.from(`bench:${token}`).toString('base64');
  const auth = encode(tokens.push);
  return [
    `set -eu; mkdir /tmp/client; printf '%s' '${JSON.stringify({ auths: { [host]: { auth } } })}' > /tmp/client/config.json`,
    'cd /tmp; git init -q source; cd source',
    `git -c 'http.extraHeader=Authorization: Basic ${encode(tokens.git)}' fetch -q --depth 1 ${repo} ${commit}; git checkout -q FETCH_HEAD`,
    `printf '%s\\n' 'root = "/var/lib/buildkit"' '[grpc]' 'address = ["unix:///tmp/b.sock"]' '[worker.containerd]' 'enabled = false' '[worker.oci]' 'snapshotter = "overlayfs"' '[registry."docker.io"]' 'mirrors = ["${host}"]' '[registry."${host}"]' 'http = true' > /tmp/b.toml`,
    'buildkitd --config /tmp/b.toml > /tmp/b.log 2>&1 &',
    'until buildctl --addr unix:///tmp/b.sock debug workers > /dev/null 2>&1; do sleep 0.05; done',
    'started=$(date +%s%3N)',
    `buildctl --addr unix:///tmp/b.sock build --frontend dockerfile.v0 --local context=. --local dockerfile=. --output type=image,name=${push},push=true,push-by-digest=true,compression=zstd,oci-mediatypes=true`,
    'echo "buildctl $(( $(date +%s%3N) - started ))"',
  ].join('\n');
}

/**
 * A pod that clones, starts a daemon, and prints `buildctl <milliseconds>`; the same sandbox and limits as a
 * pipeline's.
 */
export function rawBuildPod(build: RawBuild): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: build.name, namespace: build.namespace },
    spec: {
      restartPolicy: 'Never',
      hostUsers: false,
      automountServiceAccountToken: false,
      containers: [
        {
          name: 'build',
          image: build.image,
          command: ['bash', '-c', script(build)],
          env: [{ name: 'DOCKER_CONFIG', value: '/tmp/client' }],
          securityContext: {
            runAsUser: 0,
            privileged: false,
            procMount: 'Unmasked',
            capabilities: { add: ['SYS_ADMIN', 'NET_ADMIN'] },
            seccompProfile: { type: 'Unconfined' },
          },
          resources: {
            requests: { cpu: '250m', memory: '512Mi' },
            limits: { cpu: '2', memory: '4Gi', 'ephemeral-storage': '10Gi' },
          },
          volumeMounts: [{ name: 'layers', mountPath: '/var/lib/buildkit' }],
        },
      ],
      volumes: [{ name: 'layers', emptyDir: {} }],
    },
  };
}

/** A Deployment of one replica with a readiness probe, as anyone would write it for this image. */
export function rawDeployment(run: {
  name: string;
  namespace: string;
  image: string;
  port: number;
  /** What the cluster asks of every app: its RuntimeClass. */
  runtimeClass?: string | undefined;
}): object {
  const labels = { app: run.name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: run.name, namespace: run.namespace },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { [annotations.disk]: String(1024 ** 3) } },
        spec: {
          ...(run.runtimeClass === undefined ? {} : { runtimeClassName: run.runtimeClass }),
          hostUsers: false,
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 1,
          containers: [
            {
              name: 'app',
              image: run.image,
              ports: [{ containerPort: run.port }],
              securityContext: {
                allowPrivilegeEscalation: false,
                capabilities: { drop: ['ALL'] },
                seccompProfile: { type: 'RuntimeDefault' },
              },
              resources: {
                requests: { cpu: '50m', memory: '64Mi' },
                limits: { cpu: '1', memory: '512Mi', 'ephemeral-storage': '1Gi' },
              },
              readinessProbe: { tcpSocket: { port: run.port }, periodSeconds: 1 },
            },
          ],
        },
      },
    },
  };
}
