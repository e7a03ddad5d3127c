// Judges SPDX licence expressions: open source, terms of their own, or limits on use; alone and combined.
import parse from 'spdx-expression-parse';
import licenses from 'spdx-license-list';
import type { LicensePolicy } from '../../../contract.ts';

/** From the best to the worst. */
export const kinds = ['open', 'custom', 'restricted'] as const;
export type Kind = (typeof kinds)[number];
export type Terms = Pick<LicensePolicy, 'allow' | 'deny'>;

/** Free by the judgement of the Free Software Foundation or by plain meaning, though never put before the OSI. */
const openBeyondOsi: ReadonlySet<string> = new Set(
  [
    'AFL-1.1 AGPL-1.0 AGPL-1.0-only AGPL-1.0-or-later Apache-1.0 APSL-1.2 BSD-2-Clause-FreeBSD BSD-2-Clause-NetBSD BSD-2-Clause-Views',
    'BSD-3-Clause-Clear BSD-4-Clause BSD-4-Clause-UC BSD-Source-Code BitTorrent-1.1 CC0-1.0 CC-BY-1.0 CC-BY-2.0 CC-BY-2.5 CC-BY-3.0 CC-BY-4.0',
    'CC-BY-SA-1.0 CC-BY-SA-2.0 CC-BY-SA-2.5 CC-BY-SA-3.0 CC-BY-SA-4.0 CECILL-2.0 CECILL-B CECILL-C ClArtistic Condor-1.1 EUDatagrid FSFAP FSFUL',
    'FSFULLR FTL IJG Imlib2 LPPL-1.2 GPL-1.0 GPL-1.0+ GPL-1.0-only GPL-1.0-or-later',
    'LPPL-1.3a MIT-CMU NOSL NPL-1.0 NPL-1.1 ODbL-1.0 ODC-By-1.0 OLDAP-2.3 OLDAP-2.7 OpenSSL OSL-1.1 Beerware PDDL-1.0 Python-2.0.1',
    'Ruby SGI-B-2.0 SMLNJ SSLeay-standalone StandardML-NJ TCL Unicode-DFS-2015 Vim W3C-19980720 WTFPL X11 XFree86-1.1 YPL-1.1 Zend-2.0 Zimbra-1.3',
    'blessing bzip2-1.0.6 curl eCos-2.0 gnuplot iMatix libpng-2.0 Libpng libtiff mpich2 psutils xinetd zlib-acknowledgement MIT-Modern-Variant HPND-sell-variant Nunit',
  ].flatMap((line) => line.split(' ')),
);

/** Those that limit commercial or hosted use, by what they say. */
const restricting = /^(?:CC-BY-NC|BUSL|SSPL|Elastic|PolyForm|Prosperity|Aladdin|NCGL|FSL|FCL|SUL)\b/;

/** Is this SPDX id an open-source licence? */
export function openLicense(id: string): boolean {
  const plain = id.replace(/-(?:only|or-later)$|\+$/, '');
  // Families whose variants have one text.
  if (/^(?:GFDL|OFL)-1\.\d/.test(id)) return true;
  return openBeyondOsi.has(id) || [id, plain, `${plain}-only`].some((each) => licenses[each]?.osiApproved === true);
}

/** What a licence of the SPDX list is to this installation. */
export function kindOf(id: string, { allow, deny }: Terms): Kind {
  const plain = id.replace(/-(?:only|or-later)$|\+$/, '');
  const names = [id, plain, `${plain}-only`, `${plain}-or-later`];
  if (names.some((name) => deny.includes(name))) return 'restricted';
  if (names.some((name) => allow.includes(name)) || openLicense(id)) return 'open';
  return restricting.test(id) ? 'restricted' : 'custom';
}

const byLowerCase = new Map(Object.keys(licenses).map((id) => [id.toLowerCase(), id]));

/** The SPDX id that is spelled like this, in whatever case. */
export function spdxId(text: string): string | undefined {
  return byLowerCase.get(text.trim().toLowerCase());
}

/** "A OR B" is as good as its better side, "A AND B" as its worse one; undefined when this is no SPDX expression. */
export function kindOfExpression(expression: string, terms: Terms): Kind | undefined {
  if (expression.length > 500) return undefined;
  try {
    return kindOfNode(parse(expression.trim()), terms);
  } catch {
    const id = spdxId(expression);
    return id === undefined ? undefined : kindOf(id, terms);
  }
}

type Node = ReturnType<typeof parse>;

function kindOfNode(node: Node, terms: Terms): Kind {
  if ('conjunction' in node) {
    const [left, right] = [kinds.indexOf(kindOfNode(node.left, terms)), kinds.indexOf(kindOfNode(node.right, terms))];
    return kinds[node.conjunction === 'or' ? Math.min(left, right) : Math.max(left, right)] ?? 'restricted';
  }
  return 'license' in node ? kindOf(node.license, terms) : 'custom';
}
