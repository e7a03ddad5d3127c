// Lists the Debian packages that Python packages need in addition to their wheels, to compile and to run.
import type { Tree } from '../../tree.ts';
import { renderStep } from '../recipe.ts';
import { readConda } from './packages/conda.ts';
import { listPythonSources } from './start/sources.ts';

interface PackageNeeds {
  readonly build?: readonly string[];
  readonly run?: readonly string[];
}

const compiler = ['build-essential', 'python3-dev'];
const opencv: PackageNeeds = { run: ['libgl1', 'libglib2.0-0', 'libxcb1'] };
const ffmpeg: PackageNeeds = { run: ['ffmpeg'] };
const compiled: PackageNeeds = { build: compiler };

/** By normalized name. The library names exist in every Debian release used here. */
const needs: Readonly<Record<string, PackageNeeds>> = {
  psycopg2: { build: [...compiler, 'libpq-dev'], run: ['libpq5'] },
  psycopg: { run: ['libpq5'] },
  'psycopg-c': { build: [...compiler, 'libpq-dev'], run: ['libpq5'] },
  mysqlclient: { build: [...compiler, 'default-libmysqlclient-dev', 'pkg-config'], run: ['libmariadb3'] },
  'opencv-python': opencv,
  'opencv-contrib-python': opencv,
  easyocr: opencv,
  babeldoc: opencv,
  pdf2zh: opencv,
  'rapidocr-onnxruntime': opencv,
  ultralytics: opencv,
  paddleocr: opencv,
  insightface: { build: compiler, run: ['libgl1', 'libglib2.0-0'] },
  mediapipe: opencv,
  unstructured: { run: ['libmagic1', 'poppler-utils', 'tesseract-ocr', 'libgl1', 'libglib2.0-0'] },
  pydub: ffmpeg,
  moviepy: ffmpeg,
  'openai-whisper': ffmpeg,
  whisper: ffmpeg,
  'ffmpeg-python': ffmpeg,
  librosa: { run: ['libsndfile1', 'ffmpeg'] },
  soundfile: { run: ['libsndfile1'] },
  'yt-dlp': ffmpeg,
  weasyprint: { run: ['libpango-1.0-0', 'libpangoft2-1.0-0', 'libharfbuzz-subset0'] },
  xhtml2pdf: { build: [...compiler, 'libcairo2-dev', 'pkg-config'], run: ['libcairo2'] },
  pycairo: { build: [...compiler, 'libcairo2-dev', 'pkg-config'], run: ['libcairo2'] },
  cairosvg: { run: ['libcairo2'] },
  pdf2image: { run: ['poppler-utils'] },
  pytesseract: { run: ['tesseract-ocr'] },
  tesserocr: { build: [...compiler, 'libtesseract-dev', 'libleptonica-dev'], run: ['tesseract-ocr'] },
  ocrmypdf: { run: ['tesseract-ocr', 'ghostscript'] },
  'python-magic': { run: ['libmagic1'] },
  pypandoc: { run: ['pandoc'] },
  graphviz: { run: ['graphviz'] },
  pygraphviz: { build: [...compiler, 'libgraphviz-dev', 'pkg-config'], run: ['graphviz'] },
  pydot: { run: ['graphviz'] },
  gitpython: { run: ['git'] },
  wand: { run: ['libmagickwand-dev'] },
  pyzbar: { run: ['libzbar0'] },
  'python-ldap': { build: [...compiler, 'libldap-dev', 'libsasl2-dev'], run: ['libldap-dev'] },
  xmlsec: { build: [...compiler, 'libxmlsec1-dev', 'pkg-config'], run: ['libxmlsec1-openssl'] },
  'python3-saml': { run: ['libxmlsec1-openssl'] },
  pyodbc: { run: ['unixodbc'] },
  pyaudio: { build: [...compiler, 'portaudio19-dev'], run: ['libportaudio2'] },
  sounddevice: { run: ['libportaudio2'] },
  pyttsx3: { run: ['espeak-ng'] },
  uwsgi: compiled,
  'llama-cpp-python': { build: [...compiler, 'cmake'], run: ['libgomp1'] },
  dlib: { build: [...compiler, 'cmake'] },
  'face-recognition': { build: [...compiler, 'cmake'] },
  lightgbm: { run: ['libgomp1'] },
  xgboost: { run: ['libgomp1'] },
  fasttext: compiled,
  annoy: compiled,
  webrtcvad: compiled,
  'chroma-hnswlib': compiled,
  hnswlib: compiled,
  lz4: {},
  selenium: { run: ['chromium', 'chromium-driver'] },
};

/** What those need that usually come as wheels, when the requested version has none for the Python of the plan. */
const needsWithoutWheel: Readonly<Record<string, PackageNeeds>> = {
  'psycopg2-binary': { build: [...compiler, 'libpq-dev'], run: ['libpq5'] },
  lxml: { build: [...compiler, 'libxml2-dev', 'libxslt1-dev'], run: ['libxml2', 'libxslt1.1'] },
  pillow: { build: [...compiler, 'libjpeg-dev', 'zlib1g-dev'], run: ['libjpeg62-turbo'] },
  cffi: { build: [...compiler, 'libffi-dev'] },
  ...Object.fromEntries(
    ['aiohttp', 'asyncpg', 'frozenlist', 'greenlet', 'psutil', 'pymongo', 'pyyaml', 'wrapt'].map((name) => [
      name,
      compiled,
    ]),
  ),
};

const maximumPackages = 100;

/**
 * Renders the steps that install Debian packages in the build image or the final image.
 *
 * @param withoutWheel those of the names that are compiled, because there is no wheel
 */
export function renderSystemPackages(
  tree: Tree,
  names: ReadonlySet<string>,
  stage: 'build' | 'run',
  withoutWheel: readonly string[] = [],
): string[] {
  const listNeeds = (name: string): readonly string[] => [
    ...(Object.hasOwn(needs, name) ? (needs[name]?.[stage] ?? []) : []),
    ...(withoutWheel.includes(name) ? (needsWithoutWheel[name]?.[stage] ?? []) : []),
  ];
  const because = [...names].filter((name) => listNeeds(name).length > 0);
  const systemPackages = because.flatMap(listNeeds);
  const git = (stage === 'build' ? hasGitRequirement(tree) : hasGitCall(tree)) ? ['git'] : [];
  const conda = tree.has('requirements.txt') || tree.has('pyproject.toml') ? [] : (readConda(tree)?.debian ?? []);
  return [
    ...install('packages.txt', 'installing Debian packages', readListedPackages(tree)),
    ...install(
      because.length === 0 ? 'plan' : because.slice(0, 5).join(', '),
      'installing the Debian packages that Python packages need',
      [...new Set([...systemPackages, ...git, ...conda])],
    ),
  ];
}

/** packages.txt lists Debian packages, one per line, as on Streamlit and Hugging Face. */
function readListedPackages(tree: Tree): string[] {
  return (tree.readFile('packages.txt', 16 * 1024) ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^[a-z0-9][a-z0-9+.-]{1,80}$/.test(line));
}

const requirementFiles =
  /^(?:(?:requirements\/)?[\w.-]{0,40}requirements?[\w.-]{0,40}\.(?:txt|in)|requirements\/[\w.-]{1,60}\.(?:txt|in)|pyproject\.toml|uv\.lock|poetry\.lock|Pipfile|Pipfile\.lock|setup\.(?:py|cfg)|environment\.ya?ml)$/;

function hasGitRequirement(tree: Tree): boolean {
  return tree.entries.some(
    ({ kind, path }) =>
      kind === 'file' &&
      requirementFiles.test(path) &&
      /git\+(?:https?|ssh|git):|\bgit"?\s?[:=]\s?["']https?:|source = \{ git =|type = "git"/.test(
        tree.readFile(path) ?? '',
      ),
  );
}

const runs =
  /^(?:subprocess|sp)\.(?:run|call|check_call|check_output|Popen|getoutput)$|^os\.(?:system|popen)$|^(?:asyncio\.)?create_subprocess_(?:exec|shell)$/;

/** Code that calls the program of git. */
function hasGitCall(tree: Tree): boolean {
  return listPythonSources(tree).some(
    ({ text, module }) =>
      /["']git\b/.test(text) &&
      module.calls.some(({ callee, args: [first] }) => {
        if (!runs.test(callee) || first === undefined) return false;
        const { value } = first;
        const program = value.kind === 'tuple' ? value.items[0] : value;
        return program?.kind === 'text' && /^git(?:\s|$)/.test(program.text);
      }),
  );
}

function install(file: string, what: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  return renderStep(
    file,
    what,
    `RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ${names.slice(0, maximumPackages).join(' ')} && rm -rf /var/lib/apt/lists/*`,
  );
}
