// Knows which versions of Python 3 have the standard modules and annotations that a source uses.
import type { PythonImport } from './python.ts';

/** Names of the standard library that came with a version. */
const cameWith: Readonly<Record<string, number>> = {
  zoneinfo: 9,
  graphlib: 9,
  tomllib: 11,
  'typing.Self': 11,
  'typing.Never': 11,
  'typing.Required': 11,
  'typing.Unpack': 11,
  'typing.TypeGuard': 10,
  'typing.ParamSpec': 10,
  'typing.TypeAlias': 10,
  'typing.Annotated': 9,
  'typing.override': 12,
  'enum.StrEnum': 11,
  'datetime.UTC': 11,
  'asyncio.TaskGroup': 11,
  'itertools.batched': 12,
};
/** Modules of the standard library, and the last version that has them. */
const leftAfter: Readonly<Record<string, number>> = {
  imp: 11,
  distutils: 11,
  asyncore: 11,
  asynchat: 11,
  smtpd: 11,
  binhex: 10,
  lib2to3: 12,
  nntplib: 12,
  sndhdr: 12,
  uu: 12,
  cgi: 12,
  cgitb: 12,
  telnetlib: 12,
  pipes: 12,
  crypt: 12,
  imghdr: 12,
  audioop: 12,
};

/** Finds the oldest and newest minor version that have all imported parts of the standard library. */
export function findVersionLimits(imports: readonly PythonImport[]): { oldest: number; newest: number } {
  const names = imports.flatMap(({ module, names: each }) => [module, ...each.map(({ name }) => `${module}.${name}`)]);
  const oldest = names.map((name) => (Object.hasOwn(cameWith, name) ? (cameWith[name] ?? 0) : 0));
  const newest = names
    .map((name) => name.split('.')[0] ?? '')
    .flatMap((root) => (Object.hasOwn(leftAfter, root) ? (leftAfter[root] ?? []) : []));
  return { oldest: Math.max(0, ...oldest), newest: Math.min(Number.POSITIVE_INFINITY, ...newest) };
}

/**
 * Finds the oldest minor version that accepts an annotation; 0 if any does. Annotations are evaluated when a module is
 * imported, unless it postpones that, or writes them as text.
 */
export function findAnnotationMinor(written: string, imports: readonly PythonImport[]): number {
  const isPostponed = imports.some(
    ({ module, names }) => module === '__future__' && names.some(({ name }) => name === 'annotations'),
  );
  if (isPostponed) return 0;
  const plain = written.replaceAll(/"[^"\n]*"|'[^'\n]*'/g, '');
  if (plain.includes('|')) return 10;
  return /\b(?:list|dict|tuple|set|frozenset|type)\[/.test(plain) ? 9 : 0;
}
