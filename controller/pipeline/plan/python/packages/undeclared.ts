// Finds packages that the code imports and no list names. Another package often brought them once, and no longer does.
import type { Tree } from '../../../tree.ts';
import { formatReport } from '../../build-warnings.ts';
import type { Migration } from '../../common/migrations.ts';
import { renderStep } from '../../recipe.ts';
import { listReachable, type PythonStart } from '../start/find.ts';
import { createSourceLookup, listPythonSources, type Source } from '../start/sources.ts';
import type { PythonPackages } from './find.ts';
import { cache, renderListFile, toolFolder, uv } from './install.ts';
import { listProjectNames, normalizePackageName } from './names.ts';

/** An import, and the package that brings it. */
export interface UndeclaredPackage {
  readonly module: string;
  readonly package: string;
  /** The first file that imports it. */
  readonly file: string;
}

/**
 * Well-known modules whose package has the same name, apart from `-` for `_`. A module that is not in these tables is
 * never installed: anyone can register its name.
 */
const sameName: ReadonlySet<string> = new Set(
  [
    'aiofiles aiohttp aiosqlite alembic altair anthropic anyio apscheduler arrow asyncpg bcrypt beanie bleach bokeh boto3',
    'cachetools catboost ccxt celery certifi chardet chromadb click cohere colorama cryptography dash dash_bootstrap_components',
    'datasets ddgs deepdiff diffusers dj_database_url docx2txt duckdb duckduckgo_search emoji fastapi feedparser',
    'filelock flask flask_bcrypt flask_caching flask_cors flask_limiter flask_login flask_mail flask_migrate flask_restful',
    'flask_session flask_socketio flask_sqlalchemy flask_wtf folium fpdf fuzzywuzzy geopandas geopy gradio graphviz groq gtts',
    'gunicorn h5py html5lib httpx huggingface_hub humanize imageio itsdangerous jinja2 joblib jsonschema kaleido keras',
    'langchain langchain_anthropic langchain_chroma langchain_community langchain_core langchain_experimental langchain_google_genai',
    'langchain_groq langchain_huggingface langchain_ollama langchain_openai langchain_text_splitters langgraph librosa lightgbm',
    'litellm llama_index loguru lxml markdown markdown2 marshmallow matplotlib mistralai moviepy mplfinance networkx nltk numexpr',
    'numpy ollama openai openpyxl orjson pandas passlib pdf2image pdfkit pdfplumber peewee pinecone plotly polars prettytable',
    'prophet psutil psycopg pyarrow pydantic pydantic_settings pydeck pydub pygments pymongo pymysql pypandoc pyperclip pypdf',
    'pypdf2 pytesseract pytube pytz pyvis qdrant_client qrcode rapidfuzz redis regex rembg reportlab requests rich schedule',
    'scipy seaborn sentence_transformers shap shapely simplejson slowapi soundfile spacy sqlalchemy sqlmodel starlette',
    'statsmodels streamlit streamlit_authenticator streamlit_autorefresh streamlit_chat streamlit_extras streamlit_folium',
    'streamlit_lottie streamlit_option_menu stripe supabase sympy tabulate tenacity tensorflow textblob textstat',
    'tiktoken tokenizers toml torch torchaudio torchvision tornado tqdm transformers tweepy typer ultralytics unidecode',
    'uvicorn validators vaderSentiment waitress websockets whitenoise wikipedia wordcloud wtforms xgboost',
    'xlrd xlsxwriter yfinance youtube_transcript_api yt_dlp',
  ]
    .join(' ')
    .toLowerCase()
    .split(' '),
);
/** Modules whose package has another name. */
const otherName: Readonly<Record<string, string>> = {
  Crypto: 'pycryptodome',
  PIL: 'pillow',
  attr: 'attrs',
  barcode: 'python-barcode',
  bs4: 'beautifulsoup4',
  corsheaders: 'django-cors-headers',
  crispy_forms: 'django-crispy-forms',
  cv2: 'opencv-python-headless',
  dateutil: 'python-dateutil',
  decouple: 'python-decouple',
  django_filters: 'django-filter',
  docx: 'python-docx',
  dotenv: 'python-dotenv',
  environ: 'django-environ',
  faiss: 'faiss-cpu',
  fitz: 'pymupdf',
  git: 'gitpython',
  github: 'pygithub',
  'google.genai': 'google-genai',
  'google.generativeai': 'google-generativeai',
  jose: 'python-jose',
  jwt: 'pyjwt',
  magic: 'python-magic',
  mysql: 'mysql-connector-python',
  pptx: 'python-pptx',
  psycopg2: 'psycopg2-binary',
  rest_framework: 'djangorestframework',
  rest_framework_simplejwt: 'djangorestframework-simplejwt',
  serial: 'pyserial',
  skimage: 'scikit-image',
  sklearn: 'scikit-learn',
  slugify: 'python-slugify',
  speech_recognition: 'speechrecognition',
  st_aggrid: 'streamlit-aggrid',
  tavily: 'tavily-python',
  telegram: 'python-telegram-bot',
  websocket: 'websocket-client',
  wikipediaapi: 'wikipedia-api',
  yaml: 'pyyaml',
};
const maximumPackages = 25;
const maximumSources = 30;

/** Lists what the started code imports when it is loaded, in no list and no folder of the repository. */
export function listUndeclaredPackages(
  tree: Tree,
  packages: PythonPackages,
  start: PythonStart | undefined,
): UndeclaredPackage[] {
  const found = new Map<string, UndeclaredPackage>();
  for (const { path, module: code } of listStartedSources(tree, start))
    for (const { module, isOptional, names } of code.imports) {
      if (isOptional === true || module.startsWith('.')) continue;
      const known = [...names.map(({ name }) => `${module}.${name}`), module].map(findPackage).find(Boolean);
      if (known === undefined || isNamed(known.package, packages.names) || isOwn(tree, known.module)) continue;
      if (!found.has(known.package)) found.set(known.package, { ...known, file: path });
    }
  return [...found.values()].slice(0, maximumPackages);
}

/** The file in the start command and what it imports; the pages of Streamlit, and all of Django, are loaded by name. */
function listStartedSources(tree: Tree, start: PythonStart | undefined): Source[] {
  if (start === undefined) return [];
  const sources = listPythonSources(tree);
  if (start.framework === 'Django') return sources.slice(0, maximumSources);
  const words = start.command.split(/[\s'"]+/);
  const entries = sources.filter(
    ({ path }) => words.includes(path) || words.some((word) => /^[\w.]{1,200}:/.test(word) && toPath(word) === path),
  );
  const pages = start.framework === 'Streamlit' ? sources.filter(({ path }) => /(?:^|\/)pages\//.test(path)) : [];
  const findSource = createSourceLookup(sources);
  return [...new Set([...entries, ...pages].flatMap((entry) => listReachable(findSource, entry)))];
}

/** `app.main:server` is a name in app/main.py. */
const toPath = (word: string): string => `${(word.split(':')[0] ?? '').replaceAll('.', '/')}.py`;

function findPackage(module: string): Pick<UndeclaredPackage, 'module' | 'package'> | undefined {
  const [root = ''] = module.split('.');
  const key = [module, module.split('.').slice(0, 2).join('.'), root].find((each) => Object.hasOwn(otherName, each));
  if (key !== undefined) return { module: key, package: otherName[key] ?? key };
  return sameName.has(root.toLowerCase()) ? { module: root, package: normalizePackageName(root) } : undefined;
}

/** Two packages bring some modules, such as opencv-python and opencv-python-headless. */
function isNamed(name: string, names: ReadonlySet<string>): boolean {
  return names.has(name) || names.has(name.replace(/-(?:headless|binary|cpu)$/, ''));
}

function isOwn(tree: Tree, module: string): boolean {
  const [root = ''] = module.split('.');
  return tree.entries.some(({ path }) => path.split('/').some((part) => part === root || part === `${root}.py`));
}

const helper = `${toolFolder}/undeclared`;
/** A list that names a package brings others, so only what cannot be found after the installation is missing. */
const script = `#!/bin/bash
# undeclared MODULE=PACKAGE...: installs each package whose module is not there, and reports it.
for each in "$@"; do
  /opt/venv/bin/python -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)' "\${each%%=*}" 2> /dev/null && continue
  ${uv} pip install --python /opt/venv/bin/python "\${each#*=}" && ${formatReport('undeclared-package', '${each#*=}')}
done
exit 0`;

/**
 * Lists the program of a migration if pyproject.toml has it among the packages of development or another group alone,
 * which are not installed.
 */
export function listGroupedTool(tree: Tree, packages: PythonPackages, migration: Migration): UndeclaredPackage[] {
  const name = 'alembic';
  const isGrouped = /^\s*(?:["']alembic\b|alembic\s*=)/m.test(tree.readFile('pyproject.toml') ?? '');
  return migration.command.includes(`${name} `) &&
    isGrouped &&
    !listProjectNames(tree).includes(name) &&
    packages.names.has(name)
    ? [{ module: name, package: name, file: migration.file }]
    : [];
}

/** Renders the step that installs what is still missing after the author's own packages. */
export function renderUndeclaredInstall(undeclared: readonly UndeclaredPackage[]): string[] {
  const [first] = undeclared;
  if (first === undefined) return [];
  const pairs = undeclared.map((each) => `${each.module}=${each.package}`).join(' ');
  return [
    ...renderListFile(helper, script.split('\n')),
    ...renderStep(first.file, 'installing what is imported and in no list', `RUN ${cache} bash ${helper} ${pairs}`),
  ];
}
