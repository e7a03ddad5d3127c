// Puts the last good release back where a rollout had to end it first: apps with a volume cannot run old and new side
// by side.
import { z } from 'zod';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import type { Deployment, Pod } from '../../objects/kinds.ts';
import { isRecreated } from './objects.ts';
import { isReady, templateOf } from './pods.ts';
import type { Release } from './template.ts';

const release = z.object({
  image: z.string(),
  commit: z.string(),
  port: z.int(),
  settings: z.string().optional(),
  attempt: z.string().optional(),
});

/** What to run, and the annotations that remember why. */
export interface Choice {
  readonly release: Release;
  readonly marks: Record<string, string>;
  /** The wanted release failed before and is not tried again until it changes. */
  readonly isRolledBack: boolean;
}

/**
 * Chooses between the wanted release (of template `hash`) and the last good one. `isFailing`: its pods cannot serve.
 */
export function choose(
  app: HostedApp,
  deployment: Deployment | undefined,
  pods: readonly Pod[],
  wanted: Release,
  hash: string,
  isFailing: boolean,
): Choice {
  if (!isRecreated(app)) return { release: wanted, marks: {}, isRolledBack: false };
  const noted = deployment?.metadata.annotations ?? {};
  const isGood = pods.some((pod) => templateOf(pod) === hash && isReady(pod));
  const lastGood = isGood ? wanted : readRelease(noted[annotations.lastGood]);
  const refused = noted[annotations.refused] === hash || isFailing;
  const kept = lastGood === undefined ? {} : { [annotations.lastGood]: JSON.stringify(lastGood) };
  if (!refused || lastGood === undefined || isSame(lastGood, wanted))
    return { release: wanted, marks: kept, isRolledBack: false };
  return { release: lastGood, marks: { ...kept, [annotations.refused]: hash }, isRolledBack: true };
}

function isSame(one: Release, other: Release): boolean {
  return one.image === other.image && one.settings === other.settings;
}

/** A release as an annotation keeps it. */
export function readRelease(text: string | undefined): Release | undefined {
  if (text === undefined) return undefined;
  try {
    return release.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
