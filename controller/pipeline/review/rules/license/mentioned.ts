// What the README of a repository and the headers of its files say about its licence.
import { parse } from 'yaml';
import { text } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import type { Declaration } from './declared.ts';

const readme = /^readme(?:\.(?:md|markdown|rst|txt|adoc))?$/i;
const heading =
  /^(?:#{1,6}\s*|={1,6}\s*|\*\*)?[^\w\n]{0,10}(?:\d{1,2}[.)]\s*)?(?:the\s+)?(?:licen[cs]e|licensing|许可|开源协议|ライセンス|라이선스)/iu;
const badge = /img\.shields\.io\/[^\s)]{0,80}licen[cs]e-([A-Za-z0-9._]{2,40}(?:--[A-Za-z0-9._]{1,20}){0,4})-/i;
const sectionBytes = 500;
const readmeBytes = 512 * 1024;

const sourceFile = /\.(?:py|js|mjs|cjs|ts|tsx|jsx|go|rs|java|kt|rb|php|c|cc|cpp|h|cs|ex|sh|css|html)$/;
const maximumFiles = 40;
const headerBytes = 2_048;

/** By the README: its front matter (as Hugging Face has it), its section on the licence, its badge. */
export function readmeLicenses(tree: Tree): Declaration[] {
  const file = tree.entries.find((each) => each.kind === 'file' && readme.test(each.path))?.path;
  const content = file === undefined ? undefined : tree.text(file, readmeBytes);
  if (file === undefined || content === undefined) return [];
  return [frontMatter(content), section(content), badge.exec(content)?.[1]?.replaceAll('--', '-')]
    .filter((said) => said !== undefined && said.trim() !== '')
    .map((said): Declaration => [file, said ?? '']);
}

function frontMatter(content: string): string | undefined {
  const block = /^---\r?\n([\s\S]{0,8000}?)\r?\n---/.exec(content)?.[1];
  if (block === undefined) return undefined;
  try {
    return text(parse(block), 'license');
  } catch {
    return undefined;
  }
}

function section(content: string): string | undefined {
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

/** By SPDX headers, where all files that have one say the same. */
export function headerLicenses(tree: Tree): Declaration[] {
  const said = new Map<string, string>();
  const files = tree.entries
    .filter((each) => each.kind === 'file' && sourceFile.test(each.path))
    .slice(0, maximumFiles);
  for (const { path } of files) {
    const tag = /SPDX-License-Identifier:\s*([A-Za-z0-9.+() -]{2,100})/.exec(tree.text(path, headerBytes) ?? '')?.[1];
    if (tag !== undefined && !said.has(tag.trim())) said.set(tag.trim(), path);
  }
  return said.size === 1 ? [...said].map(([tag, path]): Declaration => [path, tag]) : [];
}
