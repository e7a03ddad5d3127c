// Normalizes Python package names, and knows which packages bring torch.
import { parseToml, readKeys, readTexts } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';

const lockBytes = 8 * 1024 * 1024;

/** PEP 503. */
export function normalizePackageName(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-');
}

/** Parses the name at the start of a requirement; empty for an option. */
export function parseRequirementName(requirement: string): string[] {
  const name = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,100}[A-Za-z0-9])?/.exec(requirement)?.[0];
  return name === undefined || requirement.startsWith('-') ? [] : [normalizePackageName(name)];
}

/** Lists the names in pyproject.toml. */
export function listProjectNames(tree: Tree): string[] {
  const parsed = parseToml(tree.readFile('pyproject.toml'));
  return [
    ...readTexts(parsed, 'project', 'dependencies').flatMap(parseRequirementName),
    ...readKeys(parsed, 'tool', 'poetry', 'dependencies').map(normalizePackageName),
  ];
}

/** Lists every package in uv.lock or poetry.lock, including indirect ones. */
export function listLockedNames(tree: Tree, file: string): string[] {
  return [...(tree.readFile(file, lockBytes) ?? '').matchAll(/^name = "([A-Za-z0-9._-]{1,100})"$/gm)].map((match) =>
    normalizePackageName(match[1] ?? ''),
  );
}

const bringing: ReadonlySet<string> = new Set([
  'torch',
  'torchvision',
  'torchaudio',
  'sentence-transformers',
  'openai-whisper',
  'easyocr',
  'ultralytics',
  'accelerate',
  'timm',
  'docling',
  'peft',
  'lightning',
  'pytorch-lightning',
  'demucs',
  'marker-pdf',
]);

/** Returns a package that brings torch; undefined if none is known to. */
export function findTorchSource(names: Iterable<string>): string | undefined {
  return [...names].find((name) => bringing.has(name));
}
