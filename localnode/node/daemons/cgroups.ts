// The cgroups of all pods of the node: one of the node's own in each hierarchy, so that those of another kubelet are
// never touched.
import { access, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const mount = '/sys/fs/cgroup';

/** In the form of the kubelet's cgroupRoot. */
export const cgroupRoot = '/moorage';

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/**
 * The tops of the machine's hierarchies: one with cgroup v2 alone, else one for each controller of v1 and the unified
 * one beside them.
 */
async function hierarchies(): Promise<string[]> {
  if (await isThere(join(mount, 'cgroup.controllers'))) return [mount];
  const entries = await readdir(mount, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(mount, entry.name));
}

/** Makes the node's cgroup in each hierarchy; the kubelet refuses to start without it. */
export async function ensureCgroups(): Promise<void> {
  for (const hierarchy of await hierarchies()) await mkdir(join(hierarchy, cgroupRoot), { recursive: true });
}

/** The node's cgroups that exist. */
export async function nodeCgroups(): Promise<string[]> {
  const found: string[] = [];
  for (const hierarchy of await hierarchies())
    if (await isThere(join(hierarchy, cgroupRoot))) found.push(join(hierarchy, cgroupRoot));
  return found;
}
