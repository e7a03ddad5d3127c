// Reads a conda environment: its pip section, and the conda packages that PyPI has too.
import { parse } from 'yaml';
import { readField } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { renderCopy, renderStep } from '../../recipe.ts';
import type { PythonPackages } from './find.ts';
import { isLine, renderExtras, renderPipInstall, renderListFile } from './install.ts';
import { normalizePackageName, parseRequirementName } from './names.ts';

const list = '/opt/requirements.txt';
const files = ['environment.yml', 'environment.yaml', 'conda.yml', 'conda.yaml'];

/** Packages with another name on PyPI. */
const renamed: Readonly<Record<string, string>> = {
  pytorch: 'torch',
  'pytorch-cpu': 'torch',
  opencv: 'opencv-python-headless',
  'py-opencv': 'opencv-python-headless',
  pytables: 'tables',
  'faiss-cpu': 'faiss-cpu',
  'tensorflow-base': 'tensorflow',
  'msgpack-python': 'msgpack',
  'python-graphviz': 'graphviz',
  'pillow-simd': 'pillow',
  'matplotlib-base': 'matplotlib',
  ruamel_yaml: 'ruamel.yaml',
};
/** Conda packages that come from Debian here. */
const programs: Readonly<Record<string, string>> = {
  ffmpeg: 'ffmpeg',
  git: 'git',
  poppler: 'poppler-utils',
  tesseract: 'tesseract-ocr',
  graphviz: 'graphviz',
  libsndfile: 'libsndfile1',
  pandoc: 'pandoc',
  imagemagick: 'imagemagick',
};
/** Packages that conda itself needs, and libraries that wheels include. */
const needless =
  /^(?:python|pip|setuptools|wheel|conda|_.{0,60}|lib.{0,60}|ld_impl.{0,40}|mkl.{0,40}|blas|openblas|openssl|ca-certificates|sqlite|tk|xz|zlib|readline|ncurses|bzip2|ncurses|icu|intel-openmp|tzdata|certifi|cudatoolkit|pytorch-cuda|pytorch-mutex|cuda.{0,40}|cudnn|nccl|gcc.{0,40}|gxx.{0,40}|cxx-compiler|compilers|make|cmake|freetype|jpeg|gmp|nettle|gnutls|lame|openh264|zstd|lz4-c|brotli.{0,20}|expat|glib|harfbuzz|cairo|yaml|krb5|pcre.{0,10})$/;

export interface CondaEnvironment {
  readonly file: string;
  /** Requirement lines for pip. */
  readonly requirements: readonly string[];
  /** Debian packages. */
  readonly debian: readonly string[];
  /** The requested Python version. */
  readonly python?: string;
}

/** Reads the environment; undefined if there is no readable one. */
export function readConda(tree: Tree): CondaEnvironment | undefined {
  const file = files.find((each) => tree.has(each));
  const dependencies = file === undefined ? undefined : parseDependencies(tree.readFile(file, 256 * 1024));
  if (file === undefined || !Array.isArray(dependencies)) return undefined;
  const requirements = dependencies.filter((each): each is string => typeof each === 'string').map(parseCondaSpec);
  const pip = dependencies.flatMap((each) => {
    const listed = readField(each, 'pip');
    return Array.isArray(listed) ? listed.filter((line): line is string => typeof line === 'string') : [];
  });
  const python = requirements.find(({ name }) => name === 'python')?.version;
  return {
    file,
    requirements: [...requirements.flatMap(toPypiRequirement), ...pip.map((line) => line.trim())].filter(isLine),
    debian: requirements.flatMap(({ name }) => (Object.hasOwn(programs, name) ? (programs[name] ?? []) : [])),
    ...(python === undefined ? {} : { python }),
  };
}

export function findCondaPackages(tree: Tree): PythonPackages | undefined {
  const environment = readConda(tree);
  if (environment === undefined) return undefined;
  const { file, requirements } = environment;
  return {
    file,
    names: new Set(requirements.flatMap(parseRequirementName)),
    install: (extra) => [
      ...renderListFile(list, requirements),
      renderCopy([file], './'),
      ...renderStep(file, 'installing the packages, from PyPI and not by conda', renderPipInstall(file, '-r', list)),
      ...renderExtras(extra),
    ],
  };
}

function parseDependencies(text: string | undefined): unknown {
  try {
    return readField(parse(text ?? '', { maxAliasCount: 10 }), 'dependencies');
  } catch {
    return undefined;
  }
}

/** Parses `channel::name=1.2=build`, `name>=1.2` and `name 1.2.*`. */
function parseCondaSpec(spec: string): { name: string; version: string | undefined } {
  const match =
    /^(?:[\w.-]{1,60}::)?([A-Za-z0-9_][\w.-]{0,80})(?:\[[^\]]{0,80}\])?\s{0,5}([^=<>!~\s].{0,60}|[=<>!~].{0,80})?$/.exec(
      spec.trim(),
    );
  const name = (match?.[1] ?? '').toLowerCase();
  const version = match?.[2]?.trim();
  return { name, version };
}

function toPypiRequirement({ name, version }: { name: string; version: string | undefined }): string[] {
  if (name === '' || needless.test(name) || Object.hasOwn(programs, name)) return [];
  return [
    `${Object.hasOwn(renamed, name) ? (renamed[name] ?? name) : normalizePackageName(name)}${toPypiVersion(version)}`,
  ];
}

/** Conda's `=1.2` means 1.2 and its patch releases; a build string after it has no meaning on PyPI. */
function toPypiVersion(version: string | undefined): string {
  if (version === undefined) return '';
  const exact = /^={1,2}\s?([0-9][\w.]{0,30})(\.\*)?(?:=.{0,60})?$/.exec(version);
  if (exact !== null) return `==${exact[1] ?? ''}${version.startsWith('==') && exact[2] === undefined ? '' : '.*'}`;
  if (/^[<>!~]/.test(version)) return version.replace(/\s/g, '');
  return /^[0-9]/.test(version) ? `==${version.replace(/\.?\*?$/, '')}.*` : '';
}
