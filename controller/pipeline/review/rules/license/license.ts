// Rule: the repository has a recognizable licence. The installation decides about custom, restrictive and missing
// licences.
import { parse } from 'yaml';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { approvalRule, type LicensePolicy, type PolicyVerdict } from '../../../contract.ts';
import { parseJson, parseToml, readField, readKeys, readText, readTexts } from '../../../manifest.ts';
import { keepHead, toOneLine } from '../../../text.ts';
import type { Tree } from '../../../tree.ts';
import type { Rule } from '../../rule.ts';
import { classifyExpression, classifyLicense, type Kind, kinds, parseLicenseName } from './expression.ts';
import { judgeText } from './text.ts';

const plainName = /^(?:un)?li[cs]en[cs]e(?:\.(?:md|markdown|txt|rst|adoc|html))?$|^copying(?:\.(?:md|txt))?$/i;
const fileName = /^(?:.+[-_.])?(?:li[cs]en[cs]e|copying|unlicense)(?:[-_.].+)?$/i;
/** Licences of dependencies, not of the repository. */
const thirdPartyName = /third[-_. ]?part|3rd|depend|vendor|notice|font|model[-_. ]?li/i;
const textExtension = /\.(?:md|markdown|txt|rst|adoc|html)$/i;
const codeExtension = /\.[a-z0-9]{1,4}$/i;
const maximumLicenseFiles = 20;

const fixMissing =
  'Add a LICENSE file with the full text of an open-source licence (MIT, Apache-2.0, GPL-3.0, …; see choosealicense.com), or set its SPDX identifier in package.json or pyproject.toml.';
const fixTerms =
  'Use the unmodified text of an open-source licence (see choosealicense.com), if you may choose. Otherwise the operator of this installation decides.';
const fixApproval =
  'The operator of this installation has to allow this app: a waiver of license/approval in spec.review.waivers of its HostedApp, with a reason. Or use the unmodified text of an open-source licence.';

/** The statement of one source: open, or the reason against it. */
type LicenseSource = { readonly kind: Kind; readonly file: string; readonly reason: string };

export const license: Rule = {
  name: 'license',
  check({ tree, input }) {
    const folders = input.path === '.' ? ['.'] : [input.path, '.'];
    const policy = input.licenses;
    for (const read of [judgeLicenseFiles, (below: Tree) => judgeDeclarations(below, policy)]) {
      const sources = folders.flatMap((folder) =>
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
