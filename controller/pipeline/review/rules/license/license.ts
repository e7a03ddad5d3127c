// Rule: the repository has a recognizable licence. The installation decides about custom, restrictive and missing
// licences.
import { parse } from 'yaml';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { listImages } from '../../../components.ts';
import { approvalRule, type LicensePolicy, type PolicyVerdict } from '../../../contract.ts';
import { parseJson, parseToml, readField, readKeys, readText, readTexts } from '../../../manifest.ts';
import { keepHead, toOneLine } from '../../../text.ts';
import type { Tree } from '../../../tree.ts';
import type { Rule } from '../../review.ts';
import {
  classifyExpression,
  classifyLicense,
  type Kind,
  kinds,
  parseLicenseName,
  type Terms,
  countShingles,
  findClosest,
  findOrigin,
  normalizeText,
  removeCommon,
} from './spdx.ts';

const plainName = /^(?:un)?li[cs]en[cs]e(?:\.(?:md|markdown|txt|rst|adoc|html))?$|^copying(?:\.(?:md|txt))?$/i;
const fileName = /^(?:.+[-_.])?(?:li[cs]en[cs]e|copying|unlicense)(?:[-_.].+)?$/i;
/** Licences of dependencies, not of the repository. */
const thirdPartyName = /third[-_. ]?part|3rd|depend|vendor|notice|font|model[-_. ]?li/i;
const textExtension = /\.(?:md|markdown|txt|rst|adoc|html)$/i;
const codeExtension = /\.[a-z0-9]{1,4}$/i;
const maximumLicenseFiles = 20;

const fixMissing =
  'Add a LICENSE file with the full text of an open-source licence (MIT, Apache-2.0, GPL-3.0, …; see choosealicense.com), or set its SPDX identifier in package.json or pyproject.toml. The status of the submission links to the page that adds the file.';
const fixTerms =
  'Use the unmodified text of an open-source licence (see choosealicense.com), if you may choose. Otherwise the operator of this installation decides.';
const fixApproval =
  'The operator of this installation has to allow this app: a waiver of license/approval in spec.review.waivers of its HostedApp, with a reason. Or use the unmodified text of an open-source licence.';

/** The statement of one source: open, or the reason against it. */
type LicenseSource = { readonly kind: Kind; readonly file: string; readonly reason: string };

export const license: Rule = {
  name: 'license',
  check({ tree, input }) {
    const folders = new Set([...listImages(input).map((image) => image.input.path), input.path, '.']);
    const policy = input.licenses;
    for (const read of [judgeLicenseFiles, (below: Tree) => judgeDeclarations(below, policy)]) {
      const sources = [...folders].flatMap((folder) =>
        read(tree.getSubtree(folder), policy).map((each) => ({
          ...each,
          file: folder === '.' ? each.file : `${folder}/${each.file}`,
        })),
      );
      const [best] = sources.toSorted((one, other) => kinds.indexOf(one.kind) - kinds.indexOf(other.kind));
      if (best !== undefined) return best.kind === 'open' ? [] : [toFinding(best, policy)];
    }
    return [toMissingFinding(policy)];
  },
};

function toFinding({ kind, file, reason }: LicenseSource, policy: LicensePolicy): Finding {
  const isCustom = kind === 'custom';
  const verdict = isCustom ? policy.custom : policy.restricted;
  if (verdict === 'reject')
    return { rule: 'license/unrecognised', severity: 'error', file, message: reason, fix: fixTerms };
  if (verdict === 'ask') return { rule: approvalRule, severity: 'error', file, message: reason, fix: fixApproval };
  return isCustom
    ? { rule: 'license/custom', severity: 'warning', file, message: reason, fix: fixTerms }
    : { rule: 'license/restricted', severity: 'warning', file, message: reason, fix: fixTerms };
}

function toMissingFinding({ missing: verdict }: LicensePolicy): Finding {
  const message = 'No licence was found, so only the author has the right to run this code.';
  const severities: Record<PolicyVerdict, Finding['severity']> = { reject: 'error', ask: 'error', warn: 'warning' };
  return verdict === 'ask'
    ? { rule: approvalRule, severity: 'error', message, fix: fixApproval }
    : { rule: 'license/missing', severity: severities[verdict], message, fix: fixMissing };
}

/** Judges the licence files. A plain file name takes precedence over one with a suffix, and a text over a manifest. */
function judgeLicenseFiles(tree: Tree, policy: LicensePolicy): LicenseSource[] {
  const files = listLicenseFiles(tree);
  const plain = files.filter((file) => plainName.test(file));
  const sources = judgeFiles(tree, plain, policy);
  return sources.length > 0 ? sources : judgeFiles(tree, files, policy);
}

function judgeFiles(tree: Tree, files: readonly string[], policy: LicensePolicy): LicenseSource[] {
  return files.flatMap((file) => {
    const judgement = judgeText(tree.readFile(file, 256 * 1024) ?? '', policy);
    if (judgement === undefined) return [];
    return [{ kind: judgement.kind, file, reason: judgement.kind === 'open' ? '' : judgement.reason }];
  });
}

function listLicenseFiles(tree: Tree): string[] {
  return tree.entries
    .filter((each) => each.kind === 'file' && (!each.path.includes('/') || /^LICENSES\/[^/]+$/.test(each.path)))
    .map((each) => each.path)
    .filter(
      (path) =>
        path.startsWith('LICENSES/') || (fileName.test(path) && isLikelyText(path) && !thirdPartyName.test(path)),
    )
    .slice(0, maximumLicenseFiles);
}

function isLikelyText(path: string): boolean {
  return textExtension.test(path) || !codeExtension.test(path) || /\.(?:mit|apache|gpl|bsd|isc|mpl)$/i.test(path);
}

/** Judges the manifests, or else the README, or else the file headers. */
function judgeDeclarations(tree: Tree, policy: LicensePolicy): LicenseSource[] {
  for (const read of [readDeclaredLicenses, readReadmeLicenses, readHeaderLicenses]) {
    const sources = read(tree).flatMap((each) => judgeDeclaration(each, policy) ?? []);
    if (sources.length > 0) return sources;
  }
  return [];
}

function judgeDeclaration([file, statement]: Declaration, policy: LicensePolicy): LicenseSource | undefined {
  const shown = keepHead(toOneLine(statement), 80);
  const kind = classifyExpression(statement, policy) ?? classifyName(statement, policy);
  // A declaration that refers to a missing licence file states nothing.
  if (kind === undefined) return undefined;
  return { kind, file, reason: `"${shown}" is not the name of an open-source licence.` };
}

function classifyName(statement: string, policy: LicensePolicy): Kind | undefined {
  if (/\b(?:unlicensed|proprietary|all rights reserved|non[- ]?commercial)\b/i.test(statement)) return 'restricted';
  const id = parseLicenseName(statement);
  if (id !== undefined) return classifyLicense(id, policy);
  return /^(?:other|custom|(?:big-?|open-?)?(?:science-)?(?:bloom-)?(?:rail|openrail)\S{0,20}|llama\S{0,20}|gemma|LicenseRef-\S{1,60})$/i.test(
    statement.trim(),
  )
    ? 'custom'
    : undefined;
}

/** The declaring file, and its statement: an SPDX expression or a name. */
type Declaration = readonly [file: string, said: string];

const maximumDeclarationLength = 200;

/** Lists the declarations of a folder's manifests, in order of precedence. */
function readDeclaredLicenses(tree: Tree): Declaration[] {
  return readers
    .flatMap(([file, read]) => {
      const content = tree.readFile(file);
      return content === undefined
        ? []
        : read(content).map((text): Declaration => [file, text.trim().slice(0, maximumDeclarationLength)]);
    })
    .filter(([, text]) => text !== '');
}

type Reader = (content: string) => readonly string[];

const readers: readonly (readonly [string, Reader])[] = [
  ['package.json', (content) => readNpm(parseJson(content))],
  ['deno.json', (content) => toList(readText(parseJson(content), 'license'))],
  ['pyproject.toml', (content) => readPython(parseToml(content))],
  ['setup.cfg', (content) => [...matchAll(content, /^license\s*=\s*(.{1,200})$/gm), ...readClassifiers(content)]],
  [
    'setup.py',
    (content) => [...matchAll(content, /\blicense\s*=\s*["']([^"'\n]{1,200})["']/g), ...readClassifiers(content)],
  ],
  ['Cargo.toml', (content) => readCargo(parseToml(content))],
  ['composer.json', (content) => readNpm(parseJson(content))],
  ['pom.xml', (content) => matchAll(content, /<license>\s*<name>\s*([^<]{1,200})<\/name>/g)],
  ['mix.exs', (content) => matchAll(content, /\blicenses:\s*\[\s*"([^"\n]{1,100})"/g)],
  ['CITATION.cff', (content) => matchAll(content, /^license:\s*["']?([^"'\n]{1,100})/gm)],
];

function toList(value: string | undefined): string[] {
  return value === undefined ? [] : [value];
}

function matchAll(content: string, pattern: RegExp): string[] {
  return [...content.matchAll(pattern)].slice(0, 5).map((match) => match[1] ?? '');
}

/** `license` may be text, an object with a type, or a list of both; in Composer, any one of a list may be chosen. */
function readNpm(manifest: unknown): string[] {
  const license = readField(manifest, 'license');
  const listed = [readField(manifest, 'licenses'), license].find((each) => Array.isArray(each));
  const single = toList(typeof license === 'string' ? license : readText(license, 'type'));
  const several = (listed ?? []).flatMap((each: unknown) =>
    toList(typeof each === 'string' ? each : readText(each, 'type')),
  );
  return [...single, ...several];
}

function readPython(manifest: unknown): string[] {
  const license = readField(manifest, 'project', 'license');
  const licenseText = typeof license === 'string' ? license : readText(license, 'text');
  const found = [
    ...toList(licenseText),
    ...readTexts(manifest, 'project', 'classifiers').flatMap(parseClassifier),
    ...toList(readText(manifest, 'tool', 'poetry', 'license')),
    ...readTexts(manifest, 'tool', 'poetry', 'classifiers').flatMap(parseClassifier),
  ];
  return found.map((each) => each.split('\n').slice(0, 3).join(' '));
}

function readCargo(manifest: unknown): string[] {
  const expression = readText(manifest, 'package', 'license') ?? readText(manifest, 'workspace', 'package', 'license');
  // "MIT/Apache-2.0" is the syntax from before SPDX.
  return readKeys(manifest).length === 0 || expression === undefined ? [] : [expression.replaceAll('/', ' OR ')];
}

function readClassifiers(content: string): string[] {
  return matchAll(content, /(License :: [^"'\n]{1,150})/g).flatMap(parseClassifier);
}

/** "License :: OSI Approved :: MIT License": the last part names it. "License :: OSI Approved" alone does not. */
function parseClassifier(classifier: string): string[] {
  const parts = classifier.split('::').map((part) => part.trim());
  const last = parts.at(-1);
  return parts[0] === 'License' && parts.length > 1 && last !== undefined && last !== 'OSI Approved' ? [last] : [];
}

const readmeName = /^readme(?:\.(?:md|markdown|rst|txt|adoc))?$/i;
const heading =
  /^(?:#{1,6}\s*|={1,6}\s*|\*\*)?[^\w\n]{0,10}(?:\d{1,2}[.)]\s*)?(?:the\s+)?(?:licen[cs]e|licensing|许可|开源协议|ライセンス|라이선스)/iu;
const badge = /img\.shields\.io\/[^\s)]{0,80}licen[cs]e-([A-Za-z0-9._]{2,40}(?:--[A-Za-z0-9._]{1,20}){0,4})-/i;
const sectionBytes = 500;
const readmeBytes = 512 * 1024;

const sourceFile = /\.(?:py|js|mjs|cjs|ts|tsx|jsx|go|rs|java|kt|rb|php|c|cc|cpp|h|cs|ex|sh|css|html)$/;
const maximumHeaderFiles = 40;
const headerBytes = 2_048;

/** Lists declarations in the README: its front matter (as on Hugging Face), its licence section, its badge. */
function readReadmeLicenses(tree: Tree): Declaration[] {
  const file = tree.entries.find((each) => each.kind === 'file' && readmeName.test(each.path))?.path;
  const content = file === undefined ? undefined : tree.readFile(file, readmeBytes);
  if (file === undefined || content === undefined) return [];
  return [readFrontMatter(content), readSection(content), badge.exec(content)?.[1]?.replaceAll('--', '-')]
    .filter((text) => text !== undefined && text.trim() !== '')
    .map((text): Declaration => [file, text ?? '']);
}

function readFrontMatter(content: string): string | undefined {
  const block = /^---\r?\n([\s\S]{0,8000}?)\r?\n---/.exec(content)?.[1];
  if (block === undefined) return undefined;
  try {
    return readText(parse(block), 'license');
  } catch {
    return undefined;
  }
}

function readSection(content: string): string | undefined {
  const lines = content.split('\n');
  const start = lines.findIndex(
    (line, index) => line.length < 80 && heading.test(line) && isHeading(line, lines[index + 1]),
  );
  if (start < 0) return undefined;
  const rest = lines.slice(start + 1).filter((line) => !/^\s*[-=~^]{3,}\s*$/.test(line));
  const end = rest.findIndex((line) => /^#{1,6}\s/.test(line));
  return rest
    .slice(0, end < 0 ? undefined : end)
    .join('\n')
    .trim()
    .slice(0, sectionBytes);
}

function isHeading(line: string, next: string | undefined): boolean {
  return /^[#=*]/.test(line) || /^\s*[-=~^]{3,}\s*$/.test(next ?? '');
}

/** Reads SPDX headers, if all files that have one agree. */
function readHeaderLicenses(tree: Tree): Declaration[] {
  const tags = new Map<string, string>();
  const files = tree.entries
    .filter((each) => each.kind === 'file' && sourceFile.test(each.path))
    .slice(0, maximumHeaderFiles);
  for (const { path } of files) {
    const tag = /SPDX-License-Identifier:\s*([A-Za-z0-9.+() -]{2,100})/.exec(
      tree.readFile(path, headerBytes) ?? '',
    )?.[1];
    if (tag !== undefined && !tags.has(tag.trim())) tags.set(tag.trim(), path);
  }
  return tags.size === 1 ? [...tags].map(([tag, path]): Declaration => [path, tag]) : [];
}

// The text of a licence file: which licence it contains, names or refers to, and what it adds.

/** `reason` is a sentence that explains why it is not open; `id` is the licence, if it is on the SPDX list. */
type Judgement =
  | { readonly kind: 'open'; readonly id: string }
  | { readonly kind: Exclude<Kind, 'open'>; readonly reason: string; readonly id?: string };

/** Recommended notices of licences; some repositories contain only these. Each maps to an SPDX id. */
const notices: readonly (readonly [RegExp, (version: string) => string])[] = [
  [
    /licensed under the apache license version (2\.0) the license you may not use (?:this|these) (?:file|work|software|project)s? except in compliance with the license/g,
    () => 'Apache-2.0',
  ],
  [
    /under the terms of the gnu general public license as published by the free software foundation either version ([23]) of the license/g,
    (version) => `GPL-${version}.0-or-later`,
  ],
  [
    /under the terms of the gnu affero general public license as published by the free software foundation either version (3) of the license/g,
    () => 'AGPL-3.0-or-later',
  ],
  [
    /under the terms of the gnu lesser general public license as published by the free software foundation either version (3) of the license/g,
    () => 'LGPL-3.0-or-later',
  ],
];
/** A notice is about a hundred words; a much longer text has other content too. */
const noticeWords = 200;
/** Maximum length of a text that only names its licence. */
const nameWords = 60;

/** Judges the text of a licence file; undefined if it states nothing. */
export function judgeText(text: string, terms: Terms): Judgement | undefined {
  const tag = /SPDX-License-Identifier:\s*([^\n*]{1,200})/.exec(text)?.[1]?.trim();
  const kind = tag === undefined ? undefined : classifyExpression(tag, terms);
  return tag !== undefined && kind !== undefined
    ? judgeTaggedText(tag, kind, text, terms)
    : judgeUntaggedText(text, terms);
}

/** A tag decides, unless the text next to it contradicts it. */
function judgeTaggedText(tag: string, kind: Kind, text: string, terms: Terms): Judgement {
  const rest = text.replace(/SPDX-(?:License-Identifier|FileCopyrightText|FileContributor):[^\n]*/g, ' ');
  const plain = normalizeText(rest);
  const isOwnText = plain.split(' ').filter((word) => /[a-z]/.test(word)).length > nameWords;
  if (kind !== 'open') return { kind, id: tag, reason: `The licence file is tagged ${shortenTag(tag)}.` };
  const judgement = judgeUntaggedText(rest, terms);
  if (judgement?.kind === 'open') return { kind: 'open', id: tag };
  const against = findClause(prohibitions, `${plain} ${findReservation(rest)}`);
  if (against !== undefined)
    return {
      kind: 'restricted',
      reason: `The licence file is tagged ${shortenTag(tag)} but its text adds ${against}, so it is not an open-source licence.`,
    };
  return isOwnText && judgement !== undefined ? judgement : { kind: 'open', id: tag };
}

/** A reservation of all rights is part of a copyright line, which is not compared with a licence. */
function findReservation(text: string): string {
  return /all rights reserved/i.test(text) && !/licen[cs]ed? (?:under|as|by)|permission is hereby granted/i.test(text)
    ? 'all rights reserved'
    : '';
}

function shortenTag(tag: string): string {
  return tag.slice(0, 60);
}

function judgeUntaggedText(text: string, terms: Terms): Judgement | undefined {
  const plain = normalizeText(text);
  // The SPDX text of the LGPL includes that of the GPL, which few copies do.
  if (
    /gnu lesser general public license version 3/.test(plain) &&
    plain.includes('incorporates the terms and conditions of version 3 of the gnu general public license')
  )
    return { kind: 'open', id: 'LGPL-3.0-or-later' };
  const best = countShingles(plain) < 5 ? undefined : findClosest(plain);
  if (best === undefined) return judgeUnknown(text, plain, terms);
  const kind = classifyLicense(best.id, terms);
  if (kind !== 'open')
    return { kind, id: best.id, reason: `The licence is ${best.id}, which is not an open-source licence.` };
  const limit = findClause(restrictions, plain, best.template);
  const condition = limit ?? findClause(conditions, best.added);
  if (condition === undefined) return { kind: 'open', id: best.id };
  return {
    kind: limit === undefined ? 'custom' : 'restricted',
    reason: `The licence file contains ${best.id} but adds ${condition}, so it is not an open-source licence.`,
  };
}

/** Judges a text that contains no licence: some only name one, or contain its notice. */
function judgeUnknown(text: string, plain: string, terms: Terms): Judgement | undefined {
  const words = plain.split(' ').filter((word) => /[a-z]/.test(word)).length;
  const limit = findClause(restrictions, plain);
  const id = limit === undefined ? (findNotice(plain) ?? findName(text, plain, words)) : undefined;
  if (id !== undefined) {
    const kind = classifyLicense(id, terms);
    return kind === 'open' ? { kind, id } : { kind, id, reason: `The licence file names ${id}.` };
  }
  return judgeOwnText(text, plain, limit, words);
}

/** Judges a text that the author wrote, or derived from a licence. */
function judgeOwnText(text: string, plain: string, limit: string | undefined, words: number): Judgement | undefined {
  const changed = findOrigin(plain);
  const ownText = (changed?.added ?? plain).replace(
    /you may not use [a-z ]{0,40}except in compliance with the license/g,
    ' ',
  );
  const forbids = limit ?? findClause(prohibitions, `${ownText} ${findReservation(text)}`);
  if (forbids !== undefined)
    return { kind: 'restricted', reason: `The licence file has ${forbids}, so it is not an open-source licence.` };
  const origin = changed === undefined ? '' : `; it is ${changed.id} with changes`;
  return words < 3
    ? undefined
    : { kind: 'custom', reason: `The text of the licence file does not match any licence on the SPDX list${origin}.` };
}

function findNotice(plain: string): string | undefined {
  if (plain.split(' ').length > noticeWords || findClause(conditions, removeCommon(plain)) !== undefined)
    return undefined;
  const words = plain.replace(/ \. /g, ' ');
  const [id] = notices.flatMap(([pattern, idOf]) => [...words.matchAll(pattern)].map((match) => idOf(match[1] ?? '')));
  return id;
}

/** A short text that forbids nothing may just name its licence. */
function findName(text: string, plain: string, words: number): string | undefined {
  if (words > nameWords) return undefined;
  const id = parseLicenseName(text);
  return id === undefined || findClause(prohibitions, `${plain} ${findReservation(text)}`) === undefined
    ? id
    : undefined;
}

type Clause = readonly [RegExp, string];

/** Clauses that deny what a host needs: commercial use (authors earn here), use by others, or any use. */
const restrictions: readonly Clause[] = [
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

/** More words that forbid use. They count only in custom texts, not in known licences. */
const prohibitions: readonly Clause[] = [
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

/** Extra conditions next to a known licence. They count only in the added text. */
const conditions: readonly Clause[] = [
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

/** Returns the name of the first clause that a text contains. */
function findClause(clauses: readonly Clause[], text: string, unless = ''): string | undefined {
  return clauses.find(([pattern]) => pattern.test(text) && !pattern.test(unless))?.[1];
}
