// Every attack, in the order in which they are tried and printed: the quick ones first.
import type { Attack } from '../attack.ts';
import { appAttacks } from './apps.ts';
import { authorAttacks } from './authors.ts';
import { runAttacks } from './runs.ts';
import { buildAttacks } from './builds.ts';
import { callerAttacks } from './callers.ts';
import { installationAttacks } from './installation.ts';
import { moneyAttacks } from './money.ts';
import { neighbourAttacks } from './neighbours.ts';
import { rightsAttacks } from './rights.ts';
import { secretAttacks } from './secrets.ts';

export const attacks: readonly Attack[] = [
  ...callerAttacks,
  ...neighbourAttacks,
  ...rightsAttacks,
  ...installationAttacks,
  ...moneyAttacks,
  ...appAttacks,
  ...authorAttacks,
  ...runAttacks,
  ...secretAttacks,
  ...buildAttacks,
];
