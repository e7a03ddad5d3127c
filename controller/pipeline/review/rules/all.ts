// The registry of review rules, in the order in which their findings are reported.
import { dockerfile } from './dockerfile.ts';
import { largeFiles } from './large-files.ts';
import { license } from './license/license.ts';
import { limits } from './limits.ts';
import { names } from './names.ts';
import type { Rule } from '../rule.ts';
import { secrets } from './secrets/secrets.ts';
import { manifestRule } from '../../manifest/merge.ts';
import { sourcePath } from './source-path.ts';
import { submodules } from './submodules.ts';
import { symlinks } from './symlinks.ts';

export const rules: readonly Rule[] = [
  limits,
  names,
  symlinks,
  submodules,
  manifestRule,
  sourcePath,
  secrets,
  license,
  dockerfile,
  largeFiles,
];
