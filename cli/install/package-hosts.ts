// Package registries that this machine finds at addresses that are closed to builds, such as those of a mirror inside.
import { lookup } from 'node:dns/promises';
import { closedCidrs, createSubnetMatcher } from '../../lib/subnets.ts';

const hosts = [
  'pypi.org',
  'files.pythonhosted.org',
  'registry.npmjs.org',
  'registry.yarnpkg.com',
  'deb.debian.org',
  'security.debian.org',
  'proxy.golang.org',
  'index.crates.io',
  'static.crates.io',
  'github.com',
];
const isClosed = createSubnetMatcher(closedCidrs);

/** Their addresses as subnets, for the chart's `builds.packageCidrs`. A loopback address is of no use to a pod. */
export async function closedPackageCidrs(resolve = resolveAll): Promise<string[]> {
  const found = (await Promise.all(hosts.map(resolve))).flat();
  const closed = found.filter((address) => isClosed(address) && !/^127\.|^::1$/.test(address));
  return [...new Set(closed)].sort().map((address) => `${address}/${address.includes(':') ? 128 : 32}`);
}

/** The chart's setting for them, where there are any. */
export async function packageSettings(): Promise<string[]> {
  const cidrs = await closedPackageCidrs();
  return cidrs.length === 0 ? [] : [`builds.packageCidrs={${cidrs.join(',')}}`];
}

async function resolveAll(host: string): Promise<string[]> {
  const answers = await lookup(host, { all: true }).catch(() => []);
  return answers.map(({ address }) => address);
}
