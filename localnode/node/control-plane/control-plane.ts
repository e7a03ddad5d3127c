// Runs the control plane as processes: etcd, kube-apiserver, controller manager and scheduler, with their certificates.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { readText } from '../../files.ts';
import {
  ensureAuthority,
  ensureCertificate,
  ensureServiceAccountKeys,
  type Authority,
  type CertificateSpec,
  writeKubeconfig,
} from './certificates.ts';
import { isAnswering, type Tls } from '../daemons/probe.ts';
import { writeConfigFile, type ProcessSpec } from '../daemons/processes.ts';

export interface ControlPlaneOptions {
  /** Folder with kube-apiserver, etcd and the rest. */
  binaries: string;
  /** Folder for data, certificates and configuration. */
  folder: string;
  /** Address where the API server listens and pods reach it. */
  address: string;
  apiPort: number;
  etcdPort: number;
  etcdPeerPort: number;
  serviceCidr: string;
  /** Additional arguments for kube-apiserver. */
  apiServerArgs?: readonly string[];
}

export interface ControlPlane {
  server: string;
  authority: Authority;
  admin: Authority;
  certificates: string;
  etcd: ProcessSpec;
  apiServer: ProcessSpec;
}

/** Returns the first address of a service range, which belongs to the `kubernetes` service. */
export function computeFirstServiceAddress(cidr: string): string {
  const octets = (cidr.split('/')[0] ?? '').split('.').map(Number);
  return [...octets.slice(0, 3), (octets[3] ?? 0) + 1].join('.');
}

async function readClientTls(authority: Authority, client: Authority): Promise<Tls> {
  const [ca, cert, key] = await Promise.all(
    [authority.certificate, client.certificate, client.key].map((file) => readFile(file, 'utf8')),
  );
  return { ca: ca ?? '', cert: cert ?? '', key: key ?? '' };
}

async function ensureEncryptionConfig(path: string): Promise<string> {
  const existing = await readText(path);
  if (existing !== undefined) return existing;
  const secret = randomBytes(32).toString('base64');
  const providers = [{ secretbox: { keys: [{ name: 'key1', secret }] } }, { identity: {} }];
  const config = {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    resources: [{ resources: ['secrets'], providers }],
  };
  return await writeConfigFile(path, stringify(config));
}

function buildEtcdSpec(options: ControlPlaneOptions, authority: Authority, server: Authority, tls: Tls): ProcessSpec {
  const client = `https://127.0.0.1:${options.etcdPort}`;
  const peer = `https://127.0.0.1:${options.etcdPeerPort}`;
  return {
    name: 'etcd',
    command: join(options.binaries, 'etcd'),
    args: [
      ...['--name=moorage', `--data-dir=${join(options.folder, 'etcd')}`],
      ...[`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`],
      ...[`--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`, `--initial-cluster=moorage=${peer}`],
      ...[
        `--cert-file=${server.certificate}`,
        `--key-file=${server.key}`,
        '--client-cert-auth',
        `--trusted-ca-file=${authority.certificate}`,
      ],
      ...[
        `--peer-cert-file=${server.certificate}`,
        `--peer-key-file=${server.key}`,
        '--peer-client-cert-auth',
        `--peer-trusted-ca-file=${authority.certificate}`,
      ],
      ...['--quota-backend-bytes=4294967296', '--log-level=warn'],
    ],
    inputs: [tls.ca],
    isReady: () => isAnswering(`${client}/health`, { tls }),
  };
}

/**
 * Creates the certificates of etcd and the API server, and returns how to start both. Changes nothing outside
 * `options.folder`.
 */
export async function prepareControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const certificates = join(options.folder, 'certificates');
  const authority = await ensureAuthority(certificates, { name: 'ca', commonName: 'moorage cluster' });
  const etcdAuthority = await ensureAuthority(certificates, { name: 'etcd-ca', commonName: 'moorage etcd' });
  const frontAuthority = await ensureAuthority(certificates, {
    name: 'front-proxy-ca',
    commonName: 'moorage front proxy',
  });
  const issue = (spec: CertificateSpec, from = authority): Promise<Authority> =>
    ensureCertificate(certificates, from, spec);
  const [etcdServer, etcdClient, serving, kubeletClient, admin] = await Promise.all([
    issue(
      {
        name: 'etcd',
        commonName: 'etcd',
        names: ['localhost'],
        addresses: ['127.0.0.1'],
        usage: ['serverAuth', 'clientAuth'],
      },
      etcdAuthority,
    ),
    issue({ name: 'etcd-client', commonName: 'kube-apiserver', usage: ['clientAuth'] }, etcdAuthority),
    issue({
      name: 'kube-apiserver',
      commonName: 'kube-apiserver',
      names: [
        'kubernetes',
        'kubernetes.default',
        'kubernetes.default.svc',
        'kubernetes.default.svc.cluster.local',
        'localhost',
      ],
      addresses: [...new Set([options.address, '127.0.0.1', computeFirstServiceAddress(options.serviceCidr)])],
      usage: ['serverAuth'],
    }),
    issue({
      name: 'kubelet-client',
      commonName: 'kube-apiserver-kubelet-client',
      organization: 'system:masters',
      usage: ['clientAuth'],
    }),
    issue({ name: 'admin', commonName: 'moorage-admin', organization: 'system:masters', usage: ['clientAuth'] }),
  ]);
  const accounts = await ensureServiceAccountKeys(certificates);
  const encryption = join(options.folder, 'encryption.yaml');
  const encryptionText = await ensureEncryptionConfig(encryption);
  const server = `https://${options.address}:${options.apiPort}`;
  const tls = await readClientTls(authority, admin);
  const apiServer: ProcessSpec = {
    name: 'kube-apiserver',
    command: join(options.binaries, 'kube-apiserver'),
    args: [
      ...[
        `--bind-address=${options.address}`,
        `--advertise-address=${options.address}`,
        `--secure-port=${options.apiPort}`,
      ],
      ...[
        `--tls-cert-file=${serving.certificate}`,
        `--tls-private-key-file=${serving.key}`,
        `--client-ca-file=${authority.certificate}`,
      ],
      ...[`--etcd-servers=https://127.0.0.1:${options.etcdPort}`, `--etcd-cafile=${etcdAuthority.certificate}`],
      ...[
        `--etcd-certfile=${etcdClient.certificate}`,
        `--etcd-keyfile=${etcdClient.key}`,
        `--encryption-provider-config=${encryption}`,
      ],
      ...[
        '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
        `--service-account-key-file=${accounts.publicKey}`,
      ],
      ...[`--service-account-signing-key-file=${accounts.key}`, `--service-cluster-ip-range=${options.serviceCidr}`],
      ...[
        '--authorization-mode=Node,RBAC',
        '--enable-admission-plugins=NodeRestriction',
        '--anonymous-auth=false',
        '--allow-privileged=true',
      ],
      ...[`--kubelet-client-certificate=${kubeletClient.certificate}`, `--kubelet-client-key=${kubeletClient.key}`],
      ...[`--kubelet-certificate-authority=${authority.certificate}`, '--kubelet-preferred-address-types=InternalIP'],
      // There are no aggregated APIs, but components report errors without an authority for them.
      ...[
        `--requestheader-client-ca-file=${frontAuthority.certificate}`,
        '--requestheader-allowed-names=front-proxy-client',
      ],
      ...[
        '--requestheader-username-headers=X-Remote-User',
        '--requestheader-group-headers=X-Remote-Group',
        '--requestheader-extra-headers-prefix=X-Remote-Extra-',
      ],
      ...['--endpoint-reconciler-type=master-count', '--profiling=false', ...(options.apiServerArgs ?? [])],
    ],
    inputs: [tls.ca, await readFile(serving.certificate, 'utf8'), encryptionText],
    isReady: () => isAnswering(`${server}/readyz`, { tls }),
    patience: 120,
  };
  return {
    server,
    authority,
    admin,
    certificates,
    etcd: buildEtcdSpec(options, etcdAuthority, etcdServer, await readClientTls(etcdAuthority, etcdClient)),
    apiServer,
  };
}

/** Creates a component's kubeconfig with its own client certificate. Returns the path. */
async function ensureComponentKubeconfig(
  plane: ControlPlane,
  folder: string,
  spec: Omit<CertificateSpec, 'usage'>,
): Promise<{ path: string; text: string }> {
  const client = await ensureCertificate(plane.certificates, plane.authority, { ...spec, usage: ['clientAuth'] });
  const path = join(folder, `${spec.name}.kubeconfig`);
  const text = await writeKubeconfig(path, {
    server: plane.server,
    authority: plane.authority.certificate,
    ...client,
    context: spec.name,
  });
  return { path, text };
}

export { ensureComponentKubeconfig };

/** Specifies the controller manager, with the controllers that a one-machine node needs. */
export async function buildControllerManagerSpec(
  options: ControlPlaneOptions,
  plane: ControlPlane,
  podCidr: string,
): Promise<ProcessSpec> {
  const kubeconfig = await ensureComponentKubeconfig(plane, options.folder, {
    name: 'kube-controller-manager',
    commonName: 'system:kube-controller-manager',
  });
  const tls = { ca: await readFile(plane.authority.certificate, 'utf8') };
  const serving = await ensureCertificate(
    plane.certificates,
    plane.authority,
    buildLoopbackServing('controller-manager-serving'),
  );
  return {
    name: 'kube-controller-manager',
    command: join(options.binaries, 'kube-controller-manager'),
    args: [
      ...[
        `--kubeconfig=${kubeconfig.path}`,
        `--authentication-kubeconfig=${kubeconfig.path}`,
        `--authorization-kubeconfig=${kubeconfig.path}`,
      ],
      ...[
        '--bind-address=127.0.0.1',
        `--tls-cert-file=${serving.certificate}`,
        `--tls-private-key-file=${serving.key}`,
      ],
      ...[
        `--root-ca-file=${plane.authority.certificate}`,
        `--service-account-private-key-file=${join(plane.certificates, 'service-account.key')}`,
      ],
      ...['--use-service-account-credentials=true', '--leader-elect=false', '--profiling=false'],
      // A quota on a resource type newer than the quota rejects everything until the next resync, which is every 5
      // minutes by default.
      '--resource-quota-sync-period=10s',
      // An app evicted for its disk use is replaced immediately and leaves a pod behind each time; the default limit is
      // 12500.
      '--terminated-pod-gc-threshold=200',
      ...[
        '--allocate-node-cidrs=true',
        `--cluster-cidr=${podCidr}`,
        `--service-cluster-ip-range=${options.serviceCidr}`,
      ],
    ],
    inputs: [kubeconfig.text],
    isReady: () => isAnswering('https://127.0.0.1:10257/healthz', { tls }),
  };
}

export async function buildSchedulerSpec(options: ControlPlaneOptions, plane: ControlPlane): Promise<ProcessSpec> {
  const kubeconfig = await ensureComponentKubeconfig(plane, options.folder, {
    name: 'kube-scheduler',
    commonName: 'system:kube-scheduler',
  });
  const tls = { ca: await readFile(plane.authority.certificate, 'utf8') };
  const serving = await ensureCertificate(
    plane.certificates,
    plane.authority,
    buildLoopbackServing('scheduler-serving'),
  );
  return {
    name: 'kube-scheduler',
    command: join(options.binaries, 'kube-scheduler'),
    args: [
      ...[
        `--kubeconfig=${kubeconfig.path}`,
        `--authentication-kubeconfig=${kubeconfig.path}`,
        `--authorization-kubeconfig=${kubeconfig.path}`,
      ],
      ...[
        '--bind-address=127.0.0.1',
        `--tls-cert-file=${serving.certificate}`,
        `--tls-private-key-file=${serving.key}`,
      ],
      ...['--leader-elect=false', '--profiling=false'],
    ],
    inputs: [kubeconfig.text],
    isReady: () => isAnswering('https://127.0.0.1:10259/healthz', { tls }),
  };
}

function buildLoopbackServing(name: string): CertificateSpec {
  return { name, commonName: 'localhost', names: ['localhost'], addresses: ['127.0.0.1'], usage: ['serverAuth'] };
}
