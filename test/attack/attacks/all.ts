// Every attack, in groups.
import type { Attack } from '../attack.ts';
import { appAttacks } from './apps.ts';
import { authorDataAttacks } from './author-data.ts';
import { authorKeyAttacks, staleKeyAttacks } from './author-keys.ts';
import { authorNoticeAttacks } from './author-notices.ts';
import { runAttacks } from './runs.ts';
import { domainAttacks, domainRightAttacks } from './domains.ts';
import { buildAttacks } from './builds.ts';
import { callerAttacks } from './callers.ts';
import { installationAttacks } from './installation.ts';
import { moneyAttacks } from './money.ts';
import { neighbourAttacks } from './neighbours.ts';
import { previewAttacks } from './previews.ts';
import { renameAttacks, renameRightAttacks } from './renames.ts';
import { rightsAttacks } from './rights.ts';
import { secretAttacks } from './secrets.ts';
import { allSignInAttacks } from './sign-in.ts';
import { visitorAttacks } from './visitors.ts';

/** These host nothing, are quick, and are tried one after another: some measure how long the installation takes to answer. */
export const quickAttacks: readonly Attack[] = [
  ...callerAttacks,
  ...neighbourAttacks,
  ...rightsAttacks,
  ...moneyAttacks,
  ...previewAttacks,
];

/** Each group waits for builds of its own most of the time, so the groups are tried at the same time, after the quick attacks. */
export const hostingAttacks: readonly (readonly Attack[])[] = [
  buildAttacks,
  [
    ...authorKeyAttacks,
    ...authorDataAttacks,
    ...authorNoticeAttacks,
    ...allSignInAttacks,
    ...runAttacks,
    ...domainAttacks,
    ...domainRightAttacks,
    ...renameAttacks,
    ...renameRightAttacks,
    ...staleKeyAttacks,
  ],
  visitorAttacks,
  installationAttacks,
  secretAttacks,
  appAttacks,
];

export const attacks: readonly Attack[] = [...quickAttacks, ...hostingAttacks.flat()];
