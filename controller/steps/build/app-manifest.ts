// What the author's manifest (moorage.yaml) changes about the app, once the review of its commit has reported it.
import type { AppManifest } from '../../../crds/app-manifest.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { effectiveSettings, readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import type { Draft } from '../../reconcile/outcome.ts';
import type { ReviewReport } from './verdict.ts';

/** The app with what the settings of a commit say, where its HostedApp says nothing itself. */
export function appWithSettings(app: HostedApp, settings: string | undefined): HostedApp {
  return { ...app, spec: resolveSpec(app, readSettings(settings)) };
}

/**
 * What the pod itself is made from must be known before it runs. All else the pipeline reads from the file by itself,
 * and the commit stands for it.
 */
export function podApp(app: HostedApp, draft: Draft, commit: string): HostedApp {
  const build = readSettings(settingsOf(draft, commit))?.build;
  if (build === undefined) return app;
  const { timeout, resources } = build;
  const wanted: AppManifest = {
    build: { ...(timeout === undefined ? {} : { timeout }), ...(resources === undefined ? {} : { resources }) },
  };
  return { ...app, spec: resolveSpec(app, wanted) };
}

/** The settings that the review of this very commit reported. */
export function settingsOf(draft: Draft, commit: string): string | undefined {
  return draft.settings?.commit === commit ? draft.settings.values : undefined;
}

/** Records the settings that a review reported. */
export function recordSettings(app: HostedApp, draft: Draft, commit: string, review: ReviewReport): void {
  delete draft.settings;
  delete draft.effective;
  if (review.settings === undefined) return;
  draft.settings = { commit, values: JSON.stringify(review.settings) };
  draft.effective = effectiveSettings(app, review.settings);
}
