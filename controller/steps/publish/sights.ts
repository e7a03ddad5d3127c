// What was seen of a live app, by a probe and by a look at its page, and the warning that comes of it.
import { timestamp } from '../../objects/timestamp.ts';
import type { Draft } from '../../reconcile/outcome.ts';
import type { PageView, ProbeResult, Snapshot } from '../../reconcile/snapshot.ts';

/** A page that does not work is looked at again after this long: the app may only have been starting. */
const faultyMs = 60_000;
const maximumFaults = 5;
const longestWarning = 300;
const serverError = /^responds with 5\d\d at \//;

/** The release that serves. */
export type Release = Readonly<Record<'image' | 'commit', string>>;

/** Nothing serves, so nothing that was seen is true any more. */
export function forgetSights(draft: Draft): void {
  delete draft.warning;
  delete draft.page;
}

/** What is known of the page of the release that serves; of another one nothing is. */
export function recordPage({ config, page, now }: Snapshot, draft: Draft, release: Release): void {
  if (config.probeUrl === undefined) return;
  if (page !== undefined) draft.page = { ...release, ...bounded(page), seenAt: timestamp(now) };
  else if (!isOf(draft, release)) draft.page = { ...release };
}

/** True when the page of the release was not looked at, or did not work a while ago. */
export function mustLook({ page, now }: Snapshot, draft: Draft): boolean {
  if (page !== undefined) return false;
  const { seenAt, faults = [] } = draft.page ?? {};
  return seenAt === undefined || (faults.length > 0 && now.getTime() - Date.parse(seenAt) >= faultyMs);
}

/**
 * It listens, so it is live; that it fails whoever opens its address is worth a word. Without an answer nothing new is
 * known.
 */
export function recordWarning({ probe }: Snapshot, draft: Draft): void {
  const warning = warningOf(probe, draft) ?? pageWarning(draft);
  if (warning === undefined) delete draft.warning;
  else draft.warning = warning;
}

function warningOf(probe: ProbeResult | undefined, { warning = '' }: Draft): string | undefined {
  const { status } = probe ?? {};
  if (status === undefined) return serverError.test(warning) ? warning : undefined;
  return status >= 500 ? `responds with ${status} at /; see the app's log` : undefined;
}

function pageWarning({ page }: Draft): string | undefined {
  const faults = page?.faults ?? [];
  return faults.length === 0 ? undefined : faults.join('; it ').slice(0, longestWarning);
}

function isOf({ page }: Draft, { image, commit }: Release): boolean {
  return page?.image === image && page.commit === commit;
}

function bounded({ faults, ...rest }: PageView): PageView & { faults: string[] } {
  return { ...rest, faults: faults.slice(0, maximumFaults).map((fault) => fault.slice(0, longestWarning)) };
}
