// Classifies licences by SPDX expression or name: open source, custom terms, or restricted use.
import parse from 'spdx-expression-parse';
import licenses from 'spdx-license-list';
import type { LicensePolicy } from '../../../contract.ts';

/** From best to worst. */
export const kinds = ['open', 'custom', 'restricted'] as const;
export type Kind = (typeof kinds)[number];
export type Terms = Pick<LicensePolicy, 'allow' | 'deny'>;

/** Free according to the Free Software Foundation or by their plain meaning, but never submitted to the OSI. */
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

/** Licences whose terms limit commercial or hosted use. */
const restricting = /^(?:CC-BY-NC|BUSL|SSPL|Elastic|PolyForm|Prosperity|Aladdin|NCGL|FSL|FCL|SUL)\b/;

/** Returns whether this SPDX id is an open-source licence. */
export function isOpenLicense(id: string): boolean {
  const plain = id.replace(/-(?:only|or-later)$|\+$/, '');
  // Families whose variants share one text.
  if (/^(?:GFDL|OFL)-1\.\d/.test(id)) return true;
  return openBeyondOsi.has(id) || [id, plain, `${plain}-only`].some((each) => licenses[each]?.osiApproved === true);
}

/** Classifies a licence of the SPDX list for this installation. */
export function classifyLicense(id: string, { allow, deny }: Terms): Kind {
  const plain = id.replace(/-(?:only|or-later)$|\+$/, '');
  const names = [id, plain, `${plain}-only`, `${plain}-or-later`];
  if (names.some((name) => deny.includes(name))) return 'restricted';
  if (names.some((name) => allow.includes(name)) || isOpenLicense(id)) return 'open';
  return restricting.test(id) ? 'restricted' : 'custom';
}

const byLowerCase = new Map(Object.keys(licenses).map((id) => [id.toLowerCase(), id]));

/** Finds the SPDX id with this spelling, ignoring case. */
function findSpdxId(text: string): string | undefined {
  return byLowerCase.get(text.trim().toLowerCase());
}

/** "A OR B" ranks as the better of the two, "A AND B" as the worse; undefined if it is not an SPDX expression. */
export function classifyExpression(expression: string, terms: Terms): Kind | undefined {
  if (expression.length > 500) return undefined;
  try {
    return classifyNode(parse(expression.trim()), terms);
  } catch {
    const id = findSpdxId(expression);
    return id === undefined ? undefined : classifyLicense(id, terms);
  }
}

type Node = ReturnType<typeof parse>;

function classifyNode(node: Node, terms: Terms): Kind {
  if ('conjunction' in node) {
    const [left, right] = [
      kinds.indexOf(classifyNode(node.left, terms)),
      kinds.indexOf(classifyNode(node.right, terms)),
    ];
    return kinds[node.conjunction === 'or' ? Math.min(left, right) : Math.max(left, right)] ?? 'restricted';
  }
  return 'license' in node ? classifyLicense(node.license, terms) : 'custom';
}

type Form = readonly [RegExp, string];

/** The first match wins, so more exact patterns come first. Hyphens and underscores match spaces. */
const shortForms: readonly Form[] = [
  [/\bsspl\b|server side public/, 'SSPL-1.0'],
  [/\bbusl\b|business source/, 'BUSL-1.1'],
  [/elastic license/, 'Elastic-2.0'],
  [/(?:cc|creative ?commons|licenses\/)[ /]?by[ /-]?nc(?:[ /-]?(?:sa|nd))?|noncommercial/, 'CC-BY-NC-4.0'],
  [/(?:cc|licenses\/)[ /]?by[ /]?nd\b/, 'CC-BY-ND-4.0'],
  [/\ba(?:ffero )?gpl ?(?:v|version )?3|affero general public license|\bagpl\b|licenses\/agpl/, 'AGPL-3.0-or-later'],
  [/\blgpl ?(?:v|version )?2\.1/, 'LGPL-2.1-or-later'],
  [/\blgpl ?(?:v|version )?2/, 'LGPL-2.0-or-later'],
  [/\blgpl\b|\blgplv?3|lesser general public license/, 'LGPL-3.0-or-later'],
  [
    /\bgpl ?(?:v|version )?2|general public license,? (?:v|version )2|licenses\/(?:old licenses\/)?gpl 2/,
    'GPL-2.0-or-later',
  ],
  [/\bgpl ?(?:v|version )?3|general public license|\bgnu gpl\b|\bgpl\b|licenses\/gpl/, 'GPL-3.0-or-later'],
  [/apache(?: software)?(?: license)?,? ?(?:v|version )?\.? ?1\.1/, 'Apache-1.1'],
  [/apache ?2|apache(?: software)? license|licenses\/license 2\.0|\basl ?2|\bapache\b/, 'Apache-2.0'],
  [/\bmpl ?(?:v|version )?1\.1/, 'MPL-1.1'],
  [/mozilla public license|\bmpl\b/, 'MPL-2.0'],
  [/\beupl\b|european union public/, 'EUPL-1.2'],
  [/eclipse public license ?(?:v|version )?1|\bepl ?1/, 'EPL-1.0'],
  [/eclipse public license|\bepl\b/, 'EPL-2.0'],
  [/\bbsd ?(?:0|zero)|\b0 ?bsd\b|zero clause bsd/, '0BSD'],
  [/\bbsd ?2|2 clause bsd|simplified bsd|freebsd/, 'BSD-2-Clause'],
  [/\bbsd ?4|4 clause bsd|original bsd/, 'BSD-4-Clause'],
  [/\bbsd\b/, 'BSD-3-Clause'],
  [/\bisc\b/, 'ISC'],
  [/\bunlicense\b(?!d)|public domain/, 'Unlicense'],
  [/\bcc ?0\b|publicdomain\/zero/, 'CC0-1.0'],
  [/(?:cc|creative ?commons attribution|licenses\/)[ /]?(?:by[ /]?sa|share ?alike)/, 'CC-BY-SA-4.0'],
  [/(?:\bcc|licenses\/)[ /]?by\b|creative ?commons attribution/, 'CC-BY-4.0'],
  [/\bwtfpl\b/, 'WTFPL'],
  [/\bzlib\b/, 'Zlib'],
  [/boost software license|\bbsl 1\.0\b/, 'BSL-1.0'],
  [/artistic license ?2|\bartistic 2/, 'Artistic-2.0'],
  [/\bpython software foundation|\bpsf/, 'PSF-2.0'],
  [/\bmulan psl/, 'MulanPSL-2.0'],
  [/\bmit\b|\bexpat\b/, 'MIT'],
];

const maximumNameLength = 600;

/** Returns the SPDX id of the licence that a short text names. */
export function parseLicenseName(text: string): string | undefined {
  const short = text.slice(0, maximumNameLength);
  const whole = findSpdxId(short);
  if (whole !== undefined) return whole;
  const plain = short
    .toLowerCase()
    .replace(/licence/g, 'license')
    .replace(/non[-\s]commercial/g, 'noncommercial')
    .replace(/[-_()"'`*[\]<>]/g, ' ')
    .replace(/\s+/g, ' ');
  return shortForms.find(([pattern]) => pattern.test(plain))?.[1];
}
