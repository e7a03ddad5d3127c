// The apps that are live, as tools and discovery documents show them.
import { readSettings, resolveSpec } from '../../crds/effective-settings.ts';
import { publicStatus } from '../../crds/public-status.ts';
import type { HostedAppSummary } from '../tools/index.ts';
import { repositoryOf, type App } from './hosted-apps.ts';

/** Of these apps those that answer now. */
export function liveApps(apps: readonly App[]): HostedAppSummary[] {
  return apps.flatMap((app) => {
    const status = publicStatus(app);
    if (status.status !== 'live') return [];
    const { title, description, category } = resolveSpec(app, readSettings(app.status?.built?.settings)).listing;
    return [
      {
        slug: app.metadata.name,
        title: title ?? app.metadata.name,
        description: description ?? app.spec.submission?.note ?? '',
        category,
        url: status.url,
        repo: repositoryOf(app).url,
      },
    ];
  });
}
