// Makes the Secrets that an app needs and nobody has to choose: random, made once, and never read.
import { randomBytes } from 'node:crypto';
import { stringify } from 'yaml';
import type { Kubectl } from '../../localnode/kubectl.ts';
import type { AppManifest } from './manifests.ts';

/** Creates those that are missing: what is there holds what the app has encrypted. */
export async function createSecrets(
  kubectl: Kubectl,
  namespace: string,
  { slug, secrets }: AppManifest,
): Promise<void> {
  for (const [name, keys] of Object.entries(secrets)) {
    const found = await kubectl(['-n', namespace, 'get', 'secret', name, '--ignore-not-found', '-o', 'name']);
    if (found.trim() === '') await kubectl(['-n', namespace, 'create', '-f', '-'], secret(name, slug, keys));
  }
}

function secret(name: string, slug: string, keys: Readonly<Record<string, number>>): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, labels: { 'app.kubernetes.io/part-of': 'moorage', 'app.kubernetes.io/instance': slug } },
    stringData: Object.fromEntries(Object.entries(keys).map(([key, digits]) => [key, hexadecimal(digits)])),
  });
}

function hexadecimal(digits: number): string {
  return randomBytes(Math.ceil(digits / 2))
    .toString('hex')
    .slice(0, digits);
}
