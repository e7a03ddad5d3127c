// Rule: the repository says, in a way that can be recognised, under which licence it may be hosted; the installation
// decides what becomes of one with terms of its own, one that limits use, and none.
import { approvalRule, type LicensePolicy, type PolicyVerdict } from '../../../contract.ts';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { head, oneLine } from '../../../text.ts';
import type { Tree } from '../../../tree.ts';
import type { Rule } from '../../rule.ts';
import { declaredLicenses, type Declaration } from './declared.ts';
import { kinds, kindOf, kindOfExpression, type Kind } from './expression.ts';
import { headerLicenses, readmeLicenses } from './mentioned.ts';
import { namedLicense } from './short-forms.ts';
import { judgeText } from './text.ts';

const plainName = /^(?:un)?li[cs]en[cs]e(?:\.(?:md|markdown|txt|rst|adoc|html))?$|^copying(?:\.(?:md|txt))?$/i;
const fileName = /^(?:.+[-_.])?(?:li[cs]en[cs]e|copying|unlicense)(?:[-_.].+)?$/i;
/** Licences of what is used, not of this. */
const ofOthers = /third[-_. ]?part|3rd|depend|vendor|notice|font|model[-_. ]?li/i;
const textExtension = /\.(?:md|markdown|txt|rst|adoc|html)$/i;
const codeExtension = /\.[a-z0-9]{1,4}$/i;
const maximumFiles = 20;

const fixMissing =
  'Add a LICENSE file with the full text of an open-source licence (MIT, Apache-2.0, GPL-3.0, …; see choosealicense.com), or set its SPDX identifier in package.json or pyproject.toml.';
const fixTerms =
  'Use the unmodified text of an open-source licence (see choosealicense.com), if you may choose. Otherwise the operator of this installation decides.';
const fixApproval =
  'The operator of this installation has to allow this app: a waiver of license/approval in spec.review.waivers of its HostedApp, with a reason. Or use the unmodified text of an open-source licence.';

/** What one place says: open, or what speaks against it. */
type LicenseSource = { readonly kind: Kind; readonly file: string; readonly reason: string };

export const license: Rule = {
  name: 'license',
  check({ tree, input }) {
    const folders = input.path === '.' ? ['.'] : [input.path, '.'];
    const policy = input.licenses;
    for (const read of [licenseTexts, (below: Tree) => spoken(below, policy)]) {
      const found = folders.flatMap((folder) =>
        read(tree.below(folder), policy).map((each) => ({
          ...each,
          file: folder === '.' ? each.file : `${folder}/${each.file}`,
        })),
      );
      const [best] = found.toSorted((one, other) => kinds.indexOf(one.kind) - kinds.indexOf(other.kind));
      if (best !== undefined) return best.kind === 'open' ? [] : [judged(best, policy)];
    }
    return [missing(policy)];
  },
};

function judged({ kind, file, reason }: LicenseSource, policy: LicensePolicy): Finding {
  const isCustom = kind === 'custom';
  const verdict = isCustom ? policy.custom : policy.restricted;
  if (verdict === 'reject')
    return { rule: 'license/unrecognised', severity: 'error', file, message: reason, fix: fixTerms };
  if (verdict === 'ask') return { rule: approvalRule, severity: 'error', file, message: reason, fix: fixApproval };
  return isCustom
    ? { rule: 'license/custom', severity: 'warning', file, message: reason, fix: fixTerms }
    : { rule: 'license/restricted', severity: 'warning', file, message: reason, fix: fixTerms };
}

function missing({ missing: verdict }: LicensePolicy): Finding {
  const message = 'No licence was found, so only the author has the right to run this code.';
  const severities: Record<PolicyVerdict, Finding['severity']> = { reject: 'error', ask: 'error', warn: 'warning' };
  return verdict === 'ask'
    ? { rule: approvalRule, severity: 'error', message, fix: fixApproval }
    : { rule: 'license/missing', severity: severities[verdict], message, fix: fixMissing };
}

/** What the licence files say. One by the plain name counts before those with a suffix. A text outweighs a manifest. */
function licenseTexts(tree: Tree, policy: LicensePolicy): LicenseSource[] {
  const files = licenseFiles(tree);
  const plain = files.filter((file) => plainName.test(file));
  const found = texts(tree, plain, policy);
  return found.length > 0 ? found : texts(tree, files, policy);
}

function texts(tree: Tree, files: readonly string[], policy: LicensePolicy): LicenseSource[] {
  return files.flatMap((file) => {
    const judgement = judgeText(tree.text(file, 256 * 1024) ?? '', policy);
    if (judgement === undefined) return [];
    return [{ kind: judgement.kind, file, reason: judgement.kind === 'open' ? '' : judgement.reason }];
  });
}

function licenseFiles(tree: Tree): string[] {
  return tree.entries
    .filter((each) => each.kind === 'file' && (!each.path.includes('/') || /^LICENSES\/[^/]+$/.test(each.path)))
    .map((each) => each.path)
    .filter(
      (path) => path.startsWith('LICENSES/') || (fileName.test(path) && looksLikeText(path) && !ofOthers.test(path)),
    )
    .slice(0, maximumFiles);
}

function looksLikeText(path: string): boolean {
  return textExtension.test(path) || !codeExtension.test(path) || /\.(?:mit|apache|gpl|bsd|isc|mpl)$/i.test(path);
}

/** What manifests say, else the README, else the headers of the files. */
function spoken(tree: Tree, policy: LicensePolicy): LicenseSource[] {
  for (const read of [declaredLicenses, readmeLicenses, headerLicenses]) {
    const found = read(tree).flatMap((each) => judgeSaid(each, policy) ?? []);
    if (found.length > 0) return found;
  }
  return [];
}

function judgeSaid([file, said]: Declaration, policy: LicensePolicy): LicenseSource | undefined {
  const shown = head(oneLine(said), 80);
  const kind = kindOfExpression(said, policy) ?? kindOfName(said, policy);
  // A file that says where the licence stands, and it does not stand there, says nothing.
  if (kind === undefined) return undefined;
  return { kind, file, reason: `"${shown}" is not the name of an open-source licence.` };
}

function kindOfName(said: string, policy: LicensePolicy): Kind | undefined {
  if (/\b(?:unlicensed|proprietary|all rights reserved|non[- ]?commercial)\b/i.test(said)) return 'restricted';
  const id = namedLicense(said);
  if (id !== undefined) return kindOf(id, policy);
  return /^(?:other|custom|(?:big-?|open-?)?(?:science-)?(?:bloom-)?(?:rail|openrail)\S{0,20}|llama\S{0,20}|gemma|LicenseRef-\S{1,60})$/i.test(
    said.trim(),
  )
    ? 'custom'
    : undefined;
}
