// Takes an image from the kept releases, so that no build is needed: for a release that the author pinned, and for a commit
// that is wanted again with the same build inputs.
import { listEffectiveSettings, readSettings } from '../../../crds/effective-settings.ts';
import { omitUndefined } from '../../../lib/values.ts';
import {
  createDoneOutcome,
  createStalledOutcome,
  shortenCommit,
  type StatusFields,
  type StatusPatch,
  type StepResult,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import type { Release } from '../deploy/components.ts';
import { findReleaseOfCommit, isSameIdentity, toRelease } from '../deploy/releases.ts';
import type { BuildInputs } from './job.ts';

/** The inputs of a release are not recorded. No build has this hash, so that a build of the commit is compared by its Job. */
const unknownInputs = 'unknown';

/**
 * Makes the pinned release the one that is built, deployed and routed. It stays in `built` when the pin is removed, so that
 * it serves until the newest commit is built, and not the release that it was chosen over.
 *
 * @param commit of spec.control.release
 */
export function selectPinnedRelease(snapshot: Snapshot, fields: StatusFields, commit: string): StepResult {
  const { app, deployment } = snapshot;
  const release = findReleaseOfCommit(fields, deployment, commit);
  if (release === undefined) return { outcomes: { Built: reportGone(app.metadata.name, commit) } };
  const isBuilt = fields.built !== undefined && isSameIdentity(fields.built, release);
  const statusPatch: StatusPatch = {
    ...(isBuilt ? {} : { built: toBuilt(release, unknownInputs), findings: undefined }),
    ...toSettings(snapshot, release),
  };
  return {
    outcomes: {
      Reviewed: createDoneOutcome(
        'ReviewPassed',
        `Commit ${shortenCommit(commit)} passed the review before it was first deployed.`,
      ),
      Built: createDoneOutcome('Pinned', describePin(commit, fields.source?.commit)),
    },
    statusPatch,
  };
}

/** Describes what a pin does in a sentence. @param newest the newest commit of the revision */
function describePin(commit: string, newest: string | undefined): string {
  const [pinned, other] = [commit, newest].map((each) => each && shortenCommit(each));
  return newest === undefined || newest === commit
    ? `Commit ${pinned} is pinned; newer commits are not deployed until the next deploy.`
    : `Commit ${pinned} is pinned; the newest commit ${other} is not deployed until the next deploy.`;
}

function reportGone(app: string, commit: string): ReturnType<typeof createStalledOutcome> {
  return createStalledOutcome('PinnedReleaseGone', {
    rule: 'run/pinned-release-gone',
    message: `Commit ${shortenCommit(commit)} is pinned, and its release is no longer kept. What serves is not changed.`,
    fix: `Deploy the newest commit (POST /api/apps/${app}/deploy), or roll back to a kept release (POST /api/apps/${app}/rollback).`,
  });
}

/**
 * Takes over the image of a commit that has served before, if its pipeline had the same Job name: the name derives from the
 * commit and the build inputs. Undefined if there is none.
 */
export function takeKeptBuild(
  snapshot: Snapshot,
  fields: StatusFields,
  { commit, inputs, name }: { readonly commit: string; readonly inputs: BuildInputs; readonly name: string },
): StatusPatch | undefined {
  // The newest run decides: a later one of the same Job may have been rejected.
  const entry = (fields.history ?? []).find(({ job, result }) => job === name && result !== 'Superseded');
  if (entry?.result !== 'Succeeded' || entry.image === undefined) return undefined;
  const [release, other] = (fields.releases ?? []).filter(
    (record) => record.commit === commit && record.image === entry.image,
  );
  // The history has only the main image, which builds that differ in another component may share.
  if (release === undefined || other !== undefined) return undefined;
  return {
    built: toBuilt(toRelease(release), inputs.hash),
    pipeline: undefined,
    findings: undefined,
    ...toSettings(snapshot, release),
  };
}

function toBuilt(
  { image, commit, port, components, settings, attempt }: Release,
  inputsHash: string,
): NonNullable<StatusFields['built']> {
  return omitUndefined({ image, commit, inputsHash, port, components, settings, attempt });
}

/** The settings of a release, as its review recorded them. */
function toSettings({ app }: Snapshot, { commit, settings }: Release): StatusPatch {
  const values = readSettings(settings);
  return settings === undefined || values === undefined
    ? { settings: undefined, effective: undefined }
    : { settings: { commit, values: settings }, effective: listEffectiveSettings(app, values) };
}
