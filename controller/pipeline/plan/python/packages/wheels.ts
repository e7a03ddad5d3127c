// Knows from which version on compiled packages have wheels for each Python, so that a pinned version finds one.
import type { Tree } from '../../../tree.ts';
import { isBelow, readRequestedRange } from './asked.ts';

/**
 * First release with wheels for Python 3.8 to 3.14. An entry that is too high costs a newer Python, one that is too low a
 * build with a compiler.
 */
const firstWheels: Readonly<Record<string, readonly (string | undefined)[]>> = {
  aiohttp: ['3.6.2', '3.7.0', '3.8.0', '3.8.3', '3.9.0', '3.10.6', '3.13.0'],
  asyncpg: ['0.20.0', '0.22.0', '0.25.0', '0.27.0', '0.29.0', '0.30.0', '0.31.0'],
  cffi: ['1.13.1', '1.14.3', '1.15.0', '1.15.1', '1.16.0', '1.17.1', '2.0.0'],
  'faiss-cpu': ['1.6.3', '1.7.0', '1.7.2', '1.7.3', '1.8.0', '1.9.0', '1.13.0'],
  frozenlist: ['1.1.0', '1.1.0', '1.2.0', '1.3.1', '1.4.1', '1.5.0', '1.8.0'],
  greenlet: ['0.4.16', '0.4.17', '1.1.1', '1.1.3', '3.0.0', '3.1.0', '3.2.4'],
  grpcio: ['1.26.0', '1.33.1', '1.41.0', '1.49.1', '1.59.0', '1.66.2', '1.75.1'],
  lxml: ['4.4.2', '4.6.0', '4.6.4', '4.9.2', '4.9.3', '5.3.0', '6.0.1'],
  matplotlib: ['3.1.2', '3.3.3', '3.5.0', '3.6.0', '3.8.0', '3.9.2', '3.10.5'],
  numba: ['0.47.0', '0.53.0', '0.55.0', '0.57.0', '0.59.0', '0.61.0', '0.63.0'],
  numpy: ['1.17.3', '1.19.3', '1.21.2', '1.23.2', '1.26.0', '2.1.0', '2.3.2'],
  onnxruntime: ['1.2.0', '1.7.0', '1.12.0', '1.15.0', '1.17.0', '1.20.0', '1.24.0'],
  pandas: ['0.25.3', '1.1.3', '1.3.3', '1.5.1', '2.1.1', '2.2.3', '2.3.3'],
  pillow: ['6.2.1', '8.0.0', '8.4.0', '9.2.0', '10.1.0', '10.4.0', '12.0.0'],
  psutil: ['5.6.4', '5.7.3', '5.9.0', '5.9.4', '5.9.5', '5.9.5', '5.9.5'],
  'psycopg2-binary': ['2.8.4', '2.8.6', '2.9.2', '2.9.5', '2.9.9', '2.9.10', '2.9.11'],
  pyarrow: ['0.16.0', '2.0.0', '6.0.1', '10.0.1', '14.0.0', '18.0.0', '22.0.0'],
  pydantic: [undefined, undefined, undefined, undefined, '1.10.13', '2.8.0', '2.12.0'],
  pymongo: ['3.9.0', '3.11.1', '4.0', '4.3.2', '4.5.0', '4.9', '4.15.1'],
  pyyaml: ['5.2', '5.4', '6.0', '6.0', '6.0.1', '6.0.2', '6.0.3'],
  'scikit-image': ['0.16.2', '0.18.0', '0.19.0', '0.20.0', '0.22.0', '0.25.0', '0.26.0'],
  'scikit-learn': ['0.22', '0.24.0', '1.0.1', '1.1.3', '1.3.1', '1.5.2', '1.7.2'],
  scipy: ['1.3.2', '1.5.4', '1.7.2', '1.9.2', '1.11.2', '1.14.1', '1.16.1'],
  sentencepiece: ['0.1.84', '0.1.94', '0.1.97', '0.1.98', '0.2.0', '0.2.1', '0.2.1'],
  spacy: ['2.2.2', '2.3.3', '3.2.0', '3.4.2', '3.7.0', '3.8.3', '3.8.8'],
  tensorflow: ['2.2.0', '2.5.0', '2.8.0', '2.12.0', '2.16.1', '2.20.0', '2.21.0'],
  tiktoken: ['0.1.1', '0.1.1', '0.1.1', '0.1.1', '0.5.2', '0.8.0', '0.12.0'],
  tokenizers: ['0.5.0', '0.9.3', '0.10.3', '0.13.2', '0.14.0', '0.14.0', '0.14.0'],
  torch: ['1.4.0', '1.8.0', '1.11.0', '2.0.0', '2.2.0', '2.5.0', '2.9.0'],
  torchvision: ['0.5.0', '0.9.0', '0.12.0', '0.15.1', '0.17.0', '0.20.0', '0.24.0'],
  wrapt: ['1.12.0', '1.12.1', '1.13.2', '1.14.1', '1.16.0', '1.17.0', '2.0.0'],
};
const firstMinor = 8;

/** A requirement that leaves no release with a wheel for some newer Python. */
export interface WheelLimit {
  readonly name: string;
  readonly range: string;
  /** The newest Python, such as 10 for 3.10, that a release within the range has a wheel for. */
  readonly newestMinor: number;
}

/** Finds the limit that allows the oldest Python only; undefined if no requirement excludes one. */
export function findWheelLimit(tree: Tree, file: string, names: ReadonlySet<string>): WheelLimit | undefined {
  return listWheelLimits(tree, file, names).toSorted((one, other) => one.newestMinor - other.newestMinor)[0];
}

/** Lists the requirements whose releases have no wheel for a Python, such as 12 for 3.12, so that they are compiled. */
export function listWithoutWheels(tree: Tree, file: string, names: ReadonlySet<string>, minor: number): string[] {
  return listWheelLimits(tree, file, names).flatMap(({ name, newestMinor }) => (newestMinor < minor ? [name] : []));
}

function listWheelLimits(tree: Tree, file: string, names: ReadonlySet<string>): WheelLimit[] {
  return Object.entries(firstWheels).flatMap(([name, firsts]): WheelLimit[] => {
    const range = names.has(name) ? readRequestedRange(tree, file, name) : undefined;
    if (range === undefined) return [];
    const index = firsts.findIndex((first) => first !== undefined && isBelow(range, toThreeNumbers(first)));
    return index < 0 ? [] : [{ name, range, newestMinor: Math.max(firstMinor + index - 1, firstMinor) }];
  });
}

function toThreeNumbers(version: string): string {
  const [major = '0', minor = '0', patch = '0'] = version.split('.');
  return `${major}.${minor}.${patch}`;
}
