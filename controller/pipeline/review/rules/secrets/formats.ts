// Which secrets have a form that can be checked, and which of those that have it are known to be placeholders.
import { onlyPublicTokens } from './json-web-token.ts';

/** By the ID of gitleaks's rule: what a real one looks like. */
const formats: readonly (readonly [RegExp, RegExp])[] = [
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

/** Below this many bits a character, a token is not random. Half of a key of its length would be repeated. */
const leastEntropy = 2.8;

/** Is it in the form of a real secret of its kind, and no known sample? */
export function isCheckedSecret(rule: string, secret: string, now: number): boolean {
  const format = formats.find(([name]) => name.test(rule))?.[1];
  const trimmed = secret.trim();
  if (format?.test(trimmed) !== true) return false;
  if (rule.startsWith('jwt')) return !onlyPublicTokens(decoded(rule, trimmed), now);
  if (rule === 'private-key') return isWholeKey(trimmed);
  return !placeholder.test(trimmed) && entropy(trimmed) >= leastEntropy && !isSeries(trimmed);
}

function decoded(rule: string, secret: string): string {
  return rule === 'jwt-base64' ? Buffer.from(secret, 'base64').toString('utf8') : secret;
}

/** Whole lines of base64, and none of the short samples of manuals. */
function isWholeKey(secret: string): boolean {
  const body = secret.replaceAll(/-----[^-]{0,80}-----/g, '').replaceAll(/\\[nr]|[\s"'+,\\]/g, '');
  return (
    body.length >= 100 &&
    /^[A-Za-z0-9/=:.,-]+$/.test(body.replaceAll('+', '')) &&
    !placeholder.test(body) &&
    entropy(body) > 4
  );
}

/** Bits of a character, as Shannon counts them. */
function entropy(text: string): number {
  const counts = new Map<string, number>();
  for (const sign of text) counts.set(sign, (counts.get(sign) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}

/** Signs in the order of the alphabet, as people type them who need something of the right length. */
function isSeries(text: string): boolean {
  let steps = 0;
  for (let index = 1; index < text.length; index += 1)
    if (text.charCodeAt(index) - text.charCodeAt(index - 1) === 1) steps += 1;
  return steps > text.length / 2;
}
