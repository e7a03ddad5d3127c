// Installs the add-ons of the node's cluster before Moorage: DNS, storage, gateway, registry service and git server.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { computeContentKey, listFilesUnder, readText, writeText } from '../files.ts';
import { resolveImageReference } from '../images/build.ts';
import { apply, applyFile, waitForRollout, type Kubectl } from '../kubectl.ts';
import { paths } from '../paths.ts';
import { waitFor } from '../shell.ts';
import { confinedClass } from './disk/confined.ts';
import { ensureGatewayCertificate } from './gateway/ports.ts';
import { node } from './settings.ts';

const getManifestPath = (name: string): string => join(paths.root, 'localnode', 'manifests', `${name}.yaml`);
const patienceSeconds = 180;

/** The Gateway API's resource definitions, standard channel, as published with v1.4.1. */
export const gatewayApiFolder = join(paths.root, 'localnode', 'manifests', 'gateway-api');

export async function installGatewayApi(kubectl: Kubectl): Promise<undefined> {
  for (const file of await listFilesUnder(gatewayApiFolder)) await applyFile(kubectl, join(gatewayApiFolder, file));
  return undefined;
}

/**
 * Applies default-deny policies to the namespaces of gateway, storage and DNS. `apiServer`: its address, as pods reach
 * it on port 6443. `storage`: the provisioner's namespace.
 */
export async function installPolicies(kubectl: Kubectl, apiServer: string, storage: string): Promise<undefined> {
  await applyFile(kubectl, getManifestPath('platform-policies'), { API_SERVER: apiServer, STORAGE: storage });
  return undefined;
}

/** `registry` is the address where the registry listens on port 5000. */
export async function installNamespaces(kubectl: Kubectl, registry: string): Promise<undefined> {
  await applyFile(kubectl, getManifestPath('namespaces'));
  await applyFile(kubectl, getManifestPath('network-policy'));
  await applyFile(kubectl, getManifestPath('registry'), { REGISTRY_ADDRESS: registry });
  return undefined;
}

export async function installDns(kubectl: Kubectl): Promise<undefined> {
  await applyFile(kubectl, getManifestPath('coredns'), { 'IMAGE:coredns': await resolveImageReference('coredns') });
  await waitForRollout(kubectl, 'kube-system', 'coredns', patienceSeconds);
  return undefined;
}

/** `isSized`: whether volumes are file systems with a fixed size, or plain folders. */
export async function installStorage(kubectl: Kubectl, isSized: boolean): Promise<undefined> {
  const file = getManifestPath('storage');
  const helper = await resolveImageReference('debian-bookworm');
  const values = {
    CONFIG: computeContentKey([await readFile(file, 'utf8'), helper]),
    'IMAGE:debian-bookworm': helper,
    'IMAGE:local-path-provisioner': await resolveImageReference('local-path-provisioner'),
    VOLUMES: paths.volumes,
    SIZED: isSized ? 'yes' : 'no',
  };
  await applyFile(kubectl, file, values);
  await waitForRollout(kubectl, 'moorage-storage', 'local-path-provisioner', patienceSeconds);
  return undefined;
}

/** Installs the RuntimeClass for apps. */
export async function installRuntimeClass(kubectl: Kubectl): Promise<undefined> {
  const metadata = { name: confinedClass };
  await apply(
    kubectl,
    stringify({ apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata, handler: confinedClass }),
  );
  return undefined;
}

/** Applies a Secret through kubectl's standard input, never on its command line. */
async function applySecret(
  kubectl: Kubectl,
  namespace: string,
  name: string,
  type: string,
  data: Record<string, string>,
): Promise<void> {
  await apply(
    kubectl,
    stringify(
      { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, type, stringData: data },
      { lineWidth: 0 },
    ),
  );
}

export interface GatewaySettings {
  image: string;
  /** Moorage's image, whose shipper runs next to the gateway. */
  shipperImage: string;
  /** Where the gateway is published on the node. */
  address: string;
  ports: { http: number; https: number };
  /**
   * This Traefik requests its certificate by name, and so needs no access to other Secrets; a published one lists all
   * of them.
   */
  asksByName: boolean;
}

const certificateSecret = 'moorage-wildcard';

export async function installGateway(
  kubectl: Kubectl,
  { image, shipperImage, address, ports, asksByName }: GatewaySettings,
): Promise<undefined> {
  const certificate = await ensureGatewayCertificate();
  const [cert, key] = await Promise.all([readFile(certificate.certificate, 'utf8'), readFile(certificate.key, 'utf8')]);
  await applySecret(kubectl, 'moorage-system', certificateSecret, 'kubernetes.io/tls', {
    'tls.crt': cert,
    'tls.key': key,
  });
  await applyFile(kubectl, getManifestPath('traefik'), {
    'IMAGE:traefik': image,
    'IMAGE:moorage': shipperImage,
    HOST_ADDRESS: address,
    HTTP_PORT: String(ports.http),
    HTTPS_PORT: String(ports.https),
    GATEWAY_SECRET: asksByName ? certificateSecret : '',
    DOMAINS_NAMESPACE: asksByName ? node.domainsNamespace : '',
  });
  await waitForRollout(kubectl, 'moorage-gateway', 'traefik', patienceSeconds);
  return undefined;
}

/** Lets the gateway read the certificates of own domains. Their namespace is part of the chart. */
export async function installDomainRights(kubectl: Kubectl): Promise<undefined> {
  await applyFile(kubectl, getManifestPath('domains'), { DOMAINS_NAMESPACE: node.domainsNamespace });
  return undefined;
}

/**
 * Creates the password for pushing to the git server once. The one in the cluster takes precedence, so that two
 * checkouts can share one cluster.
 */
async function ensureGitPassword(kubectl: Kubectl): Promise<string> {
  const storedPassword = (await readGitSecret(kubectl, 'password')) ?? (await readText(paths.gitPassword))?.trim();
  const password = storedPassword ?? randomBytes(18).toString('base64url');
  await writeText(paths.gitPassword, `${password}\n`, 0o600);
  return password;
}

/** Reads a value of the git server's Secret; undefined if there is none yet. */
async function readGitSecret(kubectl: Kubectl, key: string): Promise<string | undefined> {
  const secret = ['secret', 'git-password', '-n', 'moorage-git', '--ignore-not-found'];
  const encoded = await kubectl(['get', ...secret, '-o', `jsonpath={.data.${key}}`]);
  return encoded === '' ? undefined : Buffer.from(encoded, 'base64').toString();
}

/** Installs the git server. The operator receives the key for its read tokens too. */
export async function installGitServer(kubectl: Kubectl, image: string): Promise<undefined> {
  const readSecret = (await readGitSecret(kubectl, 'readSecret')) ?? randomBytes(36).toString('base64url');
  const password = await ensureGitPassword(kubectl);
  await applySecret(kubectl, 'moorage-git', 'git-password', 'Opaque', { password, readSecret });
  await applySecret(kubectl, 'moorage-system', 'moorage-git-read', 'Opaque', { secret: readSecret });
  await applyFile(kubectl, getManifestPath('git-server'), { 'IMAGE:git-server': image });
  await waitForRollout(kubectl, 'moorage-git', 'git', patienceSeconds);
  return undefined;
}

/** Installs the demo router, which responds until a real model router is configured. `image` is the API's image. */
export async function installDemoRouter(kubectl: Kubectl, image: string): Promise<undefined> {
  await applyFile(kubectl, getManifestPath('demo-router'), { 'IMAGE:moorage': image });
  await waitForRollout(kubectl, 'moorage-demo-router', 'demo-router', patienceSeconds);
  return undefined;
}

/** Installs the registry's credentials for the registry proxy. */
export async function installPushSecret(kubectl: Kubectl, config: string): Promise<undefined> {
  await applySecret(kubectl, 'moorage-system', 'moorage-registry', 'kubernetes.io/dockerconfigjson', {
    '.dockerconfigjson': config,
  });
  return undefined;
}

/** Waits until the node's Ready condition is true. */
export async function waitForNode(kubectl: Kubectl): Promise<undefined> {
  await waitFor(
    'the node to become Ready',
    async () => {
      const state = await kubectl([
        'get',
        'node',
        node.name,
        '-o',
        'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
      ]);
      return state === 'True';
    },
    { seconds: 90, readHint: async () => await kubectl(['describe', 'node', node.name]).catch(() => '') },
  );
  return undefined;
}
