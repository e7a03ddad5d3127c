// Words by which a licence text limits use, and those by which it adds conditions of its own. Texts are normalised.

export type Clause = readonly [RegExp, string];

/** They deny what a host needs: commercial use (authors earn here), use by others, or any use. */
export const restrictions: readonly Clause[] = [
  [/commons clause/, 'the Commons Clause'],
  [
    /(?<!\bcommercial (?:or|and|as well as) )noncommercial(?! (?:and|or) commercial)|not for commercial|no commercial use/,
    'a limit to non-commercial use',
  ],
  [
    /(?:may|shall|must) not (?:be used|use|sell|host|offer|provide)[^.]{0,120}\b(?:commercial|competing|saas|hosted|managed service|third part(?:y|ies) as a)/,
    'a limit on commercial or hosted use',
  ],
  [/multi tenant/, 'a limit on hosting for several customers'],
  [/\b(?:competing use|compet(?:es?|ing|itive) (?:with|product|service|offering)s?)\b/, 'a limit on competing use'],
  [/research (?:purposes|use) only/, 'a limit to research'],
  [/business source license/, 'the Business Source License'],
  [/server side public license/, 'the Server Side Public License'],
  [
    /sustainable use license|fair core license|functional source license|fair source license/,
    'a source-available licence',
  ],
  [
    /\b(?:only|solely|exclusively) (?:for|to)\b[^.]{0,60}\b(?:internal|personal|private|evaluation|research|educational|academic|non ?production)\b[^.]{0,40}\b(?:use|purposes?)\b/,
    'a limit of the purpose',
  ],
  [
    /(?:may|must|shall) not (?:use|run|copy|host|deploy)(?: or \w+)? (?:this|the|our) (?:software|code|program|repository|project)\b(?! (?:except|unless|to|in) )/,
    'a prohibition of use',
  ],
];

/** Further words that forbid use. They count in texts that are no known licence: what people write themselves. */
export const prohibitions: readonly Clause[] = [
  ...restrictions,
  [
    /\b(?:may|must|shall|can|do|are|is)(?: ?not|nt) (?:\w+ ){0,4}(?:use|used|run|copy|copied|modify|modified|distribute|distributed|redistribute|redistributed|host|hosted|deploy|deployed|publish|published|permitted|allowed|licensed|granted)\b/,
    'a prohibition of use',
  ],
  [/\b(?:prohibited|forbidden|proprietary|confidential|unlicensed)\b/, 'a prohibition of use'],
  [/\bno (?:\w+ ){0,3}(?:license|permission|rights?|use)\b(?: \w+){0,4}(?: granted| given)?/, 'a refusal of rights'],
  [
    /\b(?:personal|internal|private|educational|academic|evaluation|research|non ?production)(?: and \w+)? (?:use|purposes?)\b/,
    'a limit of the purpose',
  ],
  [/\b(?:prior|written|explicit|express) (?:written )?(?:permission|consent|approval)\b/, 'a reservation of consent'],
  [/all rights reserved/, 'a reservation of all rights'],
];

/** Conditions that a text has besides a licence that is known. They count only in what it adds. */
export const conditions: readonly Clause[] = [
  [/\b(?:brand|branding|logo|logos)\b/, 'conditions on a brand'],
  [/\bcommercial license\b|\bcommercial use\b/, 'conditions on commercial use'],
  [/\badditional (?:terms|conditions|restrictions|requirements)\b/, 'conditions of its own'],
  [
    /\b(?:may|must|shall|can)(?: ?not|nt)\b|\b(?:prohibited|forbidden)\b|\bnot (?:permitted|allowed)\b/,
    'conditions of its own',
  ],
  [/\b(?:prior|written|explicit|express) (?:written )?(?:permission|consent|approval)\b/, 'conditions of its own'],
  [/\b(?:only|except|unless|exclusively|provided that|must|shall be used)\b/, 'conditions of its own'],
];

/** The first clause that a text has, by its name. */
export function clauseIn(clauses: readonly Clause[], text: string, unless = ''): string | undefined {
  return clauses.find(([pattern]) => pattern.test(text) && !pattern.test(unless))?.[1];
}
