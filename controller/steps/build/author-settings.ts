// What the author's moorage.yaml changes about his app, once the review of its commit has told it.
import type { AuthorSettings } from '../../../crds/author-settings.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { effectiveSettings, readSettings, withSettings } from '../../../crds/effective-settings.ts';
import type { Draft } from '../../reconcile/outcome.ts';
import type { Reviewed } from './verdict.ts';

/** The app with what the settings of a commit say, where its HostedApp says nothing itself. */
export function settledApp(app: HostedApp, settings: string | undefined): HostedApp {
  return { ...app, spec: withSettings(app.spec, readSettings(settings)) };
}

/**
 * What the pod itself is made from must be known before it runs. All else the pipeline reads from the file by itself,
 * and the commit stands for it.
 */
export function podApp(app: HostedApp, draft: Draft, commit: string): HostedApp {
  const build = readSettings(settingsOf(draft, commit))?.build;
  if (build === undefined) return app;
  const { timeout, resources } = build;
  const wanted: AuthorSettings = {
    build: { ...(timeout === undefined ? {} : { timeout }), ...(resources === undefined ? {} : { resources }) },
  };
  return { ...app, spec: withSettings(app.spec, wanted) };
}

/** InstallationConfig that the review of this very commit told. */
export function settingsOf(draft: Draft, commit: string): string | undefined {
  return draft.settings?.commit === commit ? draft.settings.values : undefined;
}

/** Keeps what a review told. */
export function tellSettings(app: HostedApp, draft: Draft, commit: string, review: Reviewed): void {
  delete draft.settings;
  delete draft.effective;
  if (review.settings === undefined) return;
  draft.settings = { commit, values: JSON.stringify(review.settings) };
  draft.effective = effectiveSettings(app.spec, review.settings);
}
