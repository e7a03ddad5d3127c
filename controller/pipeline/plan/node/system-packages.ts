// Lists the Debian packages that npm packages need but do not include.

interface PackageNeeds {
  /** Needed during install and build. */
  readonly build?: readonly string[];
  /** Needed at run time. */
  readonly run?: readonly string[];
  /** Variables for both. */
  readonly environment?: readonly string[];
}

const chromium: PackageNeeds = {
  run: ['chromium', 'fonts-liberation'],
  environment: [
    'PUPPETEER_SKIP_DOWNLOAD=true',
    'PUPPETEER_SKIP_CHROMIUM_DOWNLOAD=true',
    'PUPPETEER_EXECUTABLE_PATH=/usr/bin/chromium',
  ],
};
const openssl: PackageNeeds = { build: ['openssl'], run: ['openssl'] };
const ffmpeg: PackageNeeds = { run: ['ffmpeg'] };
const cairo: PackageNeeds = {
  build: ['libcairo2-dev', 'libpango1.0-dev', 'libjpeg-dev', 'libgif-dev', 'librsvg2-dev', 'pkg-config'],
  run: ['libcairo2', 'libpango-1.0-0', 'libpangocairo-1.0-0', 'libjpeg62-turbo', 'libgif7', 'librsvg2-2'],
};

/** By npm package. sharp, sqlite and bcrypt are not listed: they include binaries, or are compiled. */
const table: Readonly<Record<string, PackageNeeds>> = {
  puppeteer: chromium,
  'puppeteer-core': chromium,
  '@prisma/client': openssl,
  prisma: openssl,
  canvas: cairo,
  'fluent-ffmpeg': ffmpeg,
  'ffmpeg-static-electron': ffmpeg,
  gm: { run: ['graphicsmagick'] },
  imagemagick: { run: ['imagemagick'] },
  pdf2pic: { run: ['graphicsmagick', 'ghostscript'] },
  'pdf-poppler': { run: ['poppler-utils'] },
  'node-poppler': { run: ['poppler-utils'] },
  'node-tesseract-ocr': { run: ['tesseract-ocr'] },
  'simple-git': { run: ['git', 'ca-certificates'] },
  'python-shell': { run: ['python3'] },
  'youtube-dl-exec': { build: ['python3'], run: ['python3', 'ffmpeg'] },
  wkhtmltopdf: { run: ['wkhtmltopdf'] },
  'libreoffice-convert': { run: ['libreoffice-writer-nogui', 'libreoffice-calc-nogui', 'libreoffice-impress-nogui'] },
  usb: { build: ['libudev-dev'], run: ['libudev1'] },
};

export interface SystemPackages {
  readonly build: readonly string[];
  readonly run: readonly string[];
  readonly environment: readonly string[];
  /** The npm packages that need it. */
  readonly because: readonly string[];
}

/** Selects the Debian packages for a project's npm packages. */
export function selectSystemPackages(names: ReadonlySet<string>): SystemPackages {
  const because = Object.keys(table).filter((name) => names.has(name));
  const collectPart = (part: keyof PackageNeeds): string[] => [
    ...new Set(because.flatMap((name) => table[name]?.[part] ?? [])),
  ];
  return { build: collectPart('build'), run: collectPart('run'), environment: collectPart('environment'), because };
}
