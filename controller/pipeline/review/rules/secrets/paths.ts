// Keeps files that an app runs apart from those in which people write samples: manuals, tests, examples, defaults.

/** Folders of things that are shown or tested, not run. */
const sampleFolder =
  /(?:^|\/)(?:tests?|__tests?__|testing|testdata|test[-_]data|spec|specs|e2e|cypress|playwright|fixtures?|__fixtures__|mocks?|__mocks__|stubs|snapshots|__snapshots__|cassettes|examples?|samples?|demos?|tutorials?|cookbook|playground|docs?|documentation|wiki|website|notebooks?|benchmarks?|evals?|\.github|\.gitlab|\.circleci|\.devcontainer|\.vscode|\.idea)\//i;

const sampleFile: readonly RegExp[] = [
  // Manuals, notebooks and records.
  /\.(?:md|mdx|markdown|rst|adoc|txt|ipynb|log|har|pdf|po|pot|csv|tsv|jsonl)$/i,
  // Tests.
  /(?:^|\/)(?:test_[^/]{1,200}|[^/]{1,200}_test|[^/]{1,200}[._-](?:test|spec|stories|mock|fixture)|conftest)\.[a-z]{1,5}$/i,
  // Examples and templates.
  /(?:^|[/._-])(?:example|examples|sample|template|tmpl|tpl|dist|dummy|demo|placeholder)(?:[._-][^/]{0,60})?$/i,
  // Environments of tests.
  /(?:^|\/)\.env\.(?:test|testing|ci|e2e)$/i,
  // Compose and CI.
  /(?:^|\/)(?:docker-)?compose[^/]{0,60}\.ya?ml$/i,
  /(?:^|\/)\.(?:gitlab-ci|travis|drone|woodpecker)\.ya?ml$/i,
  // Defaults that people are to replace.
  /(?:^|\/)(?:config|configs|configuration|defaults?|default[._-]config|config[._-]default)\.(?:py|js|mjs|cjs|ts|json|json5|jsonc|toml|ya?ml|ini|cfg|conf|properties|php|rb|go)$/i,
];

/** Firebase and Google give these files to every visitor of an app. */
const publicFile = /(?:^|\/)(?:google-services\.json|GoogleService-Info\.plist|firebase[\w.-]{0,40}\.(?:js|ts|json))$/i;

/** Is this a path at which samples stand? Relative to the folder of the app where the file is in it. */
export function isSamplePath(path: string): boolean {
  return sampleFolder.test(path) || sampleFile.some((pattern) => pattern.test(path));
}

export function isPublicPath(path: string): boolean {
  return publicFile.test(path);
}
