// Runs containerd as a process, with the kubelet's runtime, registry and pod network.
import { join } from 'node:path';
import { getBinariesFolder, getBinaryPath } from '../../binaries/build.ts';
import { readText } from '../../files.ts';
import { paths } from '../../paths.ts';
import { canRun } from '../../shell.ts';
import { renderCniConfig } from '../network/cni.ts';
import { getUnpackedFolder } from './packages.ts';
import { writeConfigFile, type ProcessSpec } from './processes.ts';
import { confinedClass, ensureConfined, type ConfinedRuntime } from '../disk/confined.ts';
import { writeHosts } from '../registry/registry.ts';
import { containerdSocket, node } from '../settings.ts';

export const pauseImage = 'docker.io/moorage/pause:1';

const sysResource = 24n;

/** Returns true if a capability set from /proc/PID/status includes CAP_SYS_RESOURCE. */
export function hasSysResource(status: string): boolean {
  const found = /^CapEff:\s*([0-9a-f]+)$/m.exec(status);
  return found !== null && ((BigInt(`0x${found[1] ?? '0'}`) >> sysResource) & 1n) === 1n;
}

/**
 * Renders the configuration. Without CAP_SYS_RESOURCE, no sandbox can get the OOM score that Kubernetes requests, so
 * the score stays unchanged. Files in an image's VOLUME stay in the container's own layer: in a separate volume,
 * nothing would limit them.
 */
export function renderContainerdConfig(
  hosts: string,
  cni: string,
  canScore: boolean,
  confined: ConfinedRuntime,
): string {
  return `version = 3
root = "${join(paths.state, 'containerd')}"
state = "${join(paths.run, 'containerd')}"
disabled_plugins = ["io.containerd.nri.v1.nri"]

[grpc]
address = "${containerdSocket}"

[debug]
level = "warn"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = ${String(!canScore)}
netns_mounts_under_state_dir = true
enable_unprivileged_ports = true
enable_unprivileged_icmp = true
ignore_image_defined_volumes = true

[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "${getBinaryPath('runc', 'runc')}"
SystemdCgroup = false

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.${confinedClass}]
runtime_type = "io.containerd.runc.v2"
base_runtime_spec = "${confined.spec}"
pod_annotations = ${JSON.stringify(confined.annotations)}

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.${confinedClass}.options]
BinaryName = "${confined.runc}"
SystemdCgroup = false

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["${join(getUnpackedFolder('containernetworking-plugins'), 'usr/lib/cni')}"]
conf_dir = "${cni}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "${pauseImage}"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "${hosts}"
`;
}

export async function buildContainerdSpec(diskAnnotations: readonly string[]): Promise<ProcessSpec> {
  const hosts = await writeHosts();
  const cni = join(paths.state, 'cni');
  const network = await writeConfigFile(
    join(cni, '10-moorage.conflist'),
    renderCniConfig(node, join(paths.run, 'cni')),
  );
  const canScore = hasSysResource((await readText('/proc/self/status')) ?? '');
  const confined = await ensureConfined(diskAnnotations);
  const path = join(paths.state, 'containerd.toml');
  const text = await writeConfigFile(path, renderContainerdConfig(hosts, cni, canScore, confined));
  return {
    name: 'containerd',
    command: getBinaryPath('containerd', 'containerd'),
    args: ['--config', path],
    // containerd looks up its shim on the path.
    env: {
      PATH: `${getBinariesFolder('containerd')}:${getBinariesFolder('runc')}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    },
    inputs: [text, network, (await readText(confined.spec)) ?? ''],
    isReady: () => canRun(getBinaryPath('containerd', 'ctr'), ['--address', containerdSocket, 'version']),
  };
}
