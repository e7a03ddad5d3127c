// What the manifests of a repository say about its licence.
import { field, keys, parseJson, parseToml, text, texts } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';

/** Where it stands, and what it says: an SPDX expression or a name. */
export type Declaration = readonly [file: string, said: string];

const longest = 200;

/** What the manifests in a folder declare, in the order in which they count. */
export function declaredLicenses(tree: Tree): Declaration[] {
  return readers
    .flatMap(([file, read]) => {
      const content = tree.text(file);
      return content === undefined
        ? []
        : read(content).map((said): Declaration => [file, said.trim().slice(0, longest)]);
    })
    .filter(([, said]) => said !== '');
}

type Reader = (content: string) => readonly string[];

const readers: readonly (readonly [string, Reader])[] = [
  ['package.json', (content) => npm(parseJson(content))],
  ['deno.json', (content) => present(text(parseJson(content), 'license'))],
  ['pyproject.toml', (content) => python(parseToml(content))],
  ['setup.cfg', (content) => [...matches(content, /^license\s*=\s*(.{1,200})$/gm), ...classifiers(content)]],
  [
    'setup.py',
    (content) => [...matches(content, /\blicense\s*=\s*["']([^"'\n]{1,200})["']/g), ...classifiers(content)],
  ],
  ['Cargo.toml', (content) => cargo(parseToml(content))],
  ['composer.json', (content) => npm(parseJson(content))],
  ['pom.xml', (content) => matches(content, /<license>\s*<name>\s*([^<]{1,200})<\/name>/g)],
  ['mix.exs', (content) => matches(content, /\blicenses:\s*\[\s*"([^"\n]{1,100})"/g)],
  ['CITATION.cff', (content) => matches(content, /^license:\s*["']?([^"'\n]{1,100})/gm)],
];

function present(value: string | undefined): string[] {
  return value === undefined ? [] : [value];
}

function matches(content: string, pattern: RegExp): string[] {
  return [...content.matchAll(pattern)].slice(0, 5).map((match) => match[1] ?? '');
}

/** `license` as text, as an object with a type, as a list of both; composer has a list of which one may be chosen. */
function npm(manifest: unknown): string[] {
  const license = field(manifest, 'license');
  const listed = [field(manifest, 'licenses'), license].find((each) => Array.isArray(each));
  const single = present(typeof license === 'string' ? license : text(license, 'type'));
  const several = (listed ?? []).flatMap((each: unknown) =>
    present(typeof each === 'string' ? each : text(each, 'type')),
  );
  return [...single, ...several];
}

function python(manifest: unknown): string[] {
  const license = field(manifest, 'project', 'license');
  const said = typeof license === 'string' ? license : text(license, 'text');
  const found = [
    ...present(said),
    ...texts(manifest, 'project', 'classifiers').flatMap(ofClassifier),
    ...present(text(manifest, 'tool', 'poetry', 'license')),
    ...texts(manifest, 'tool', 'poetry', 'classifiers').flatMap(ofClassifier),
  ];
  return found.map((each) => each.split('\n').slice(0, 3).join(' '));
}

function cargo(manifest: unknown): string[] {
  const said = text(manifest, 'package', 'license') ?? text(manifest, 'workspace', 'package', 'license');
  // "MIT/Apache-2.0" is how it was written before SPDX.
  return keys(manifest).length === 0 || said === undefined ? [] : [said.replaceAll('/', ' OR ')];
}

function classifiers(content: string): string[] {
  return matches(content, /(License :: [^"'\n]{1,150})/g).flatMap(ofClassifier);
}

/** "License :: OSI Approved :: MIT License": the last part names it. "License :: OSI Approved" alone does not. */
function ofClassifier(classifier: string): string[] {
  const parts = classifier.split('::').map((part) => part.trim());
  const last = parts.at(-1);
  return parts[0] === 'License' && parts.length > 1 && last !== undefined && last !== 'OSI Approved' ? [last] : [];
}
