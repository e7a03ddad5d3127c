// Paths of the local cluster: state, sockets, cache and the few files for the person who ran `up`.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const cache = resolve(process.env['MOORAGE_CACHE'] ?? join(homedir(), '.cache', 'moorage'));
const state = '/var/lib/moorage';
const run = '/run/moorage';
const local = join(root, '.moorage');

/** Every path that `up` writes to, so that `down` can be checked against this list. */
export const paths = {
  root,
  /** Survives `down`: compiled binaries, root file systems, finished images, the local certificate authority. */
  cache,
  /** Removed by `down`: etcd data, certificates of the cluster, registry blobs, volumes, logs. */
  state,
  logs: join(state, 'log'),
  certificates: join(state, 'certificates'),
  volumes: join(state, 'volumes'),
  /** Removed by `down` and by a reboot: pid files, sockets, container state. */
  run,
  /** Next to the source and ignored by git: what a person needs to use the cluster. */
  local,
  kubeconfig: join(local, 'kubeconfig'),
  /** A kubectl that matches the cluster, for machines without one. */
  kubectl: join(local, 'kubectl'),
  authority: join(local, 'ca.crt'),
  /** Signs the certificates of own domains of apps. */
  domainsAuthority: join(local, 'domains-ca.crt'),
  /** State and logs of a kind cluster created from this checkout; removed by `down`. */
  kind: join(local, 'kind'),
  /** Addresses of the installation, for `npm run submit`. */
  installation: join(local, 'config.json'),
  gitPassword: join(local, 'git-password'),
};
