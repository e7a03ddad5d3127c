// Decides whether a finding is a real secret, based on its format, its path, and what the value gives access to.
import { createHmac } from 'node:crypto';
import { parseJson, readField } from '../../../manifest.ts';

/** The format of a real secret, by gitleaks rule ID. */
const secretFormats: readonly (readonly [RegExp, RegExp])[] = [
  [/^aws-access-token$/, /^(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}$/],
  [/^github-(?:pat|oauth|app-token|refresh-token)$/, /^gh[pousr]_[0-9A-Za-z]{36,255}$/],
  [/^github-fine-grained-pat$/, /^github_pat_\w{82}$/],
  [/^gitlab-/, /^gl[a-z]{2,8}-[\w.-]{20,300}$/],
  [/^openai-api-key$/, /^sk-[\w-]{20,200}$/],
  [/^anthropic-/, /^sk-ant-[\w-]{80,120}$/],
  [/^huggingface-/, /^(?:hf|api_org)_[A-Za-z]{34}$/],
  [/^slack-/, /^(?:xox[a-z]-[\w-]{20,300}|xapp-[\w-]{20,300}|https:\/\/hooks\.slack\.com\/.{20,200})$/i],
  [/^gcp-api-key$/, /^AIza[\w-]{35}$/],
  [/^stripe-access-token$/, /^[sr]k_(?:live|prod)_[0-9A-Za-z]{10,200}$/],
  [/^npm-access-token$/, /^npm_[0-9A-Za-z]{36}$/],
  [/^pypi-upload-token$/, /^pypi-AgE[\w-]{50,1000}$/],
  [/^sendgrid-api-token$/, /^SG\.[\w.=-]{60,70}$/i],
  [/^digitalocean-(?:pat|access-token|refresh-token)$/, /^do[opr]_v1_[0-9a-f]{64}$/],
  [/^alibaba-access-key-id$/, /^LTAI[0-9A-Za-z]{20}$/],
  [/^private-key$/, /^-----BEGIN[^-]{0,60}PRIVATE KEY(?: BLOCK)?-----[\s\S]{100,}$/],
  [/^jwt(?:-base64)?$/, /^ey[\w-]{10,}/],
];

const placeholder =
  /example|sample|placeholder|your[-_]?|change[-_]?me|replace|dummy|fake|foobar|insert|redacted|xxxx|0{6}|1{6}|a{6}|\*{3}|\.{3}|…|<[^>]{1,60}>|\$\{|\{\{|1234567|7654321|abcdefg|qwerty|deadbeef|(?:^|[-_])test(?:[-_]|$)/i;

/** Below this many bits per character, a token is not random: half of a key of its length would be repeats. */
const minimumEntropy = 2.8;

/** Returns whether it has the format of a real secret, and is not a known sample. */
export function isCheckedSecret(rule: string, secret: string, now: number): boolean {
  const format = secretFormats.find(([name]) => name.test(rule))?.[1];
  const trimmed = secret.trim();
  if (format?.test(trimmed) !== true) return false;
  if (rule.startsWith('jwt')) return !hasOnlyPublicTokens(decodeToken(rule, trimmed), now);
  if (rule === 'private-key') return isWholeKey(trimmed);
  return !placeholder.test(trimmed) && computeEntropy(trimmed) >= minimumEntropy && !isSeries(trimmed);
}

function decodeToken(rule: string, secret: string): string {
  return rule === 'jwt-base64' ? Buffer.from(secret, 'base64').toString('utf8') : secret;
}

/**
 * Words of samples in the base64 of a key. Only six characters or more: random base64 of that length contains a given
 * word of four letters in one key of 650.
 */
const keyPlaceholder =
  /example|sample|placeholder|your[-_]?key|your[-_]?private|change[-_]?me|replace|foobar|insert|redacted|x{6}|0{6}|1{6}|a{6}|1234567|7654321|abcdefg|qwerty|deadbeef/i;

/** Whole lines of base64, unlike the short samples in manuals. */
function isWholeKey(secret: string): boolean {
  const body = secret.replaceAll(/-----[^-]{0,80}-----/g, '').replaceAll(/\\[nr]|[\s"'+,\\]/g, '');
  return (
    body.length >= 100 &&
    /^[A-Za-z0-9/=:.,-]+$/.test(body.replaceAll('+', '')) &&
    !keyPlaceholder.test(body) &&
    computeEntropy(body) > 4
  );
}

/** Shannon entropy in bits per character. */
function computeEntropy(text: string): number {
  const counts = new Map<string, number>();
  for (const sign of text) counts.set(sign, (counts.get(sign) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}

/** Detects characters in alphabetical order, which people type as dummy values of the right length. */
function isSeries(text: string): boolean {
  let steps = 0;
  for (let index = 1; index < text.length; index += 1)
    if (text.charCodeAt(index) - text.charCodeAt(index - 1) === 1) steps += 1;
  return steps > text.length / 2;
}

const jsonWebToken = /(eyJ[\w-]{5,4000})\.(eyJ[\w-]{5,8000})\.([\w-]{0,2000})/g;

/** Secrets that manuals use to sign their samples. */
const knownSecrets = [
  'secret',
  'your-256-bit-secret',
  'your-384-bit-secret',
  'your-512-bit-secret',
  'a-string-secret-at-least-256-bits-long',
  'super-secret-jwt-token-with-at-least-32-characters-long',
  'your-super-secret-jwt-token-with-at-least-32-characters-long',
  'changeme',
  'password',
  'test',
];
const hashes: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };

/**
 * Returns whether every token in the text may be public: made for browsers (Supabase's anonymous role), widely known
 * (the keys of a local Supabase, the sample on jwt.io, a signature with a known secret), or expired. False if there is
 * no token. @param now seconds since 1970
 */
export function hasOnlyPublicTokens(text: string, now: number): boolean {
  const found = [...text.matchAll(jsonWebToken)];
  return found.length > 0 && found.every((match) => isPublicToken(match, now));
}

function isPublicToken([, header = '', payload = '', signature = '']: RegExpMatchArray, now: number): boolean {
  const claims = readTokenPart(payload);
  const expires = readField(claims, 'exp');
  return (
    readField(claims, 'role') === 'anon' ||
    readField(claims, 'iss') === 'supabase-demo' ||
    (readField(claims, 'sub') === '1234567890' && readField(claims, 'name') === 'John Doe') ||
    (typeof expires === 'number' && expires < now) ||
    isSignedByKnown(header, payload, signature)
  );
}

function readTokenPart(part: string): unknown {
  return parseJson(Buffer.from(part, 'base64url').toString('utf8'));
}

function isSignedByKnown(header: string, payload: string, signature: string): boolean {
  const algorithm = readField(readTokenPart(header), 'alg');
  if (algorithm === 'none') return true;
  const hash = typeof algorithm === 'string' ? hashes[algorithm] : undefined;
  if (hash === undefined) return false;
  return knownSecrets.some(
    (secret) => createHmac(hash, secret).update(`${header}.${payload}`).digest('base64url') === signature,
  );
}

const serverApi = /gemini|gen_?ai\b|generative|vertex|palm|google_api_key|googleapikey|speech|vision/i;
/**
 * Firebase, maps and similar APIs: every page that uses them contains their keys, which identify the app, not the user.
 */
const browserApi = /authDomain|firebase|messagingSenderId|\bmaps?\b|_maps?_|youtube|innertube|recaptcha|analytics/i;

const contextLines = 4;
const longestLine = 2_000;

/**
 * Returns whether the lines around a Google key name an API that servers call, and none that pages call. Both kinds of
 * key look alike, and every visitor receives a key for pages.
 */
export function isServerKey(text: string, line: number): boolean {
  const near = text
    .split('\n')
    .slice(Math.max(0, line - 1 - contextLines), line + contextLines)
    .map((each) => each.slice(0, longestLine))
    .join('\n');
  return serverApi.test(near) && !browserApi.test(near);
}

/** Folders of examples and tests, which do not run. */
const sampleFolder =
  /(?:^|\/)(?:tests?|__tests?__|testing|testdata|test[-_]data|spec|specs|e2e|cypress|playwright|fixtures?|__fixtures__|mocks?|__mocks__|stubs|snapshots|__snapshots__|cassettes|examples?|samples?|demos?|tutorials?|cookbook|playground|docs?|documentation|wiki|website|notebooks?|benchmarks?|evals?|\.github|\.gitlab|\.circleci|\.devcontainer|\.vscode|\.idea)\//i;

const sampleFile: readonly RegExp[] = [
  // Manuals, notebooks and logs.
  /\.(?:md|mdx|markdown|rst|adoc|txt|ipynb|log|har|pdf|po|pot|csv|tsv|jsonl)$/i,
  // Tests.
  /(?:^|\/)(?:test_[^/]{1,200}|[^/]{1,200}_test|[^/]{1,200}[._-](?:test|spec|stories|mock|fixture)|conftest)\.[a-z]{1,5}$/i,
  // Examples and templates.
  /(?:^|[/._-])(?:example|examples|sample|template|tmpl|tpl|dist|dummy|demo|placeholder)(?:[._-][^/]{0,60})?$/i,
  // Environments for tests.
  /(?:^|\/)\.env\.(?:test|testing|ci|e2e)$/i,
  // Compose and CI.
  /(?:^|\/)(?:docker-)?compose[^/]{0,60}\.ya?ml$/i,
  /(?:^|\/)\.(?:gitlab-ci|travis|drone|woodpecker)\.ya?ml$/i,
  // Defaults that users are meant to replace.
  /(?:^|\/)(?:config|configs|configuration|defaults?|default[._-]config|config[._-]default)\.(?:py|js|mjs|cjs|ts|json|json5|jsonc|toml|ya?ml|ini|cfg|conf|properties|php|rb|go)$/i,
];

/** Firebase and Google deliver these files to every visitor of an app. */
const publicFile = /(?:^|\/)(?:google-services\.json|GoogleService-Info\.plist|firebase[\w.-]{0,40}\.(?:js|ts|json))$/i;

/** Returns whether samples are usual at this path. It is relative to the app's folder if the file is in it. */
export function isSamplePath(path: string): boolean {
  return sampleFolder.test(path) || sampleFile.some((pattern) => pattern.test(path));
}

export function isPublicPath(path: string): boolean {
  return publicFile.test(path);
}
