// Which app a host name is of, and what the author says of its requests.
import { RE2JS } from 're2js';
import type { FreeRequests } from '../../../../crds/metering.ts';
import { type AppsSite, appHost } from '../../../../crds/app-url.ts';
import { labels } from '../../../../crds/names.ts';
import { readSettings, resolveSpec } from '../../../../crds/effective-settings.ts';
import type { App } from '../../../apps/index.ts';
import type { HostApp, HostKind } from './class.ts';

export interface HostsOptions {
  readonly apps: { get(name: string): App | undefined };
  readonly site: AppsSite;
  /** Host of the API. */
  readonly platformHost: string;
}

/** Finds the app of a host. An app is read again once it has changed. */
export function hostIndex({ apps, site, platformHost }: HostsOptions): (host: string) => HostKind {
  const known = new WeakMap<App, HostApp>();
  const suffix = appHost('', site);
  return (host) => {
    if (host === platformHost) return { kind: 'platform' };
    const app = host.endsWith(suffix) ? apps.get(host.slice(0, -suffix.length)) : undefined;
    if (app === undefined) return { kind: 'unknown' };
    const read = known.get(app) ?? hostApp(app);
    known.set(app, read);
    return { kind: 'app', app: read };
  };
}

function hostApp(app: App): HostApp {
  const { metadata, status } = app;
  const { run, metering } = resolveSpec(app, readSettings(status?.settings?.values));
  return {
    slug: metadata.name,
    healthPath: run.healthPath,
    submitter: metadata.labels?.[labels.caller],
    isFree: freeRule(metering.free),
  };
}

/** Whether one of the rules holds for a path and a status. */
export function freeRule(rules: FreeRequests): (path: string, status: number) => boolean {
  const compiled = rules.map(({ path, statuses = [] }) => ({
    path: path === undefined ? undefined : RE2JS.compile(patternOf(path)),
    statuses: new Set(statuses),
  }));
  return (given, status) =>
    compiled.some(
      ({ path, statuses }) =>
        (path === undefined || path.matches(given)) &&
        (statuses.size === 0 || statuses.has(String(status)) || statuses.has(`${Math.floor(status / 100)}xx`)),
    );
}

/** `*` stands for anything within a segment, `**` for anything. A visitor chooses the path: the engine is a linear one. */
function patternOf(glob: string): string {
  return glob
    .split(/(\*{1,2})/)
    .map((part) => ({ '*': '[^/]*', '**': '.*' })[part] ?? RE2JS.quote(part))
    .join('');
}
