// Causes of crashes that are variables without a value: which ones, and how an author sets them.

export interface CrashCause {
  readonly pattern: RegExp;
  readonly fix: string | ((lines: readonly string[]) => string);
  /** What to quote instead of the last matching line. */
  readonly quote?: (lines: readonly string[]) => string;
  /** Variables without a value that the lines name. */
  readonly variables?: (lines: readonly string[]) => readonly string[];
  /** What else the log has to show. */
  readonly isProven?: (lines: readonly string[]) => boolean;
}

/** How an author sets a secret. @param name of the variable */
export function describeSecret(name = 'NAME'): string {
  return `PUT /api/apps/{slug}/secrets/${name}`;
}

/** The fields that Pydantic misses. The reason stands on the line after each. */
function listFields(lines: readonly string[]): string[] {
  const missing = lines.flatMap((line, index) => {
    const field = lines[index - 1]?.trim() ?? '';
    return /^\s+Field required\b/.test(line) && field !== '' ? [field] : [];
  });
  return [...new Set(missing)];
}

function suggestFields(lines: readonly string[]): string {
  const nested = listFields(lines).find((field) => field.includes('.'));
  const how =
    nested === undefined
      ? 'Pydantic reads each from the variable of its name, unless the code says otherwise: set it in run.env of moorage.yaml, or give it a default.'
      : `A field with a dot is part of another one: with env_nested_delimiter="__" Pydantic reads it from the variable ${nested.toUpperCase().replaceAll('.', '__')}; otherwise from the file of settings. Set it in run.env of moorage.yaml, or give it a default.`;
  return `The settings of the app require these fields, and neither a variable nor a file gives them. ${how} If it is a secret, set it with ${describeSecret(listFieldVariables(lines)[0])}, and never commit it.`;
}

/** Names of the variables that Pydantic reads these fields from. */
function listFieldVariables(lines: readonly string[]): string[] {
  return listFields(lines).map((field) => field.toUpperCase().replaceAll('.', '__'));
}

const missingVariable =
  /[Ee]nvironment [Vv]ariables?\b.{0,40}(?:fail|invalid)|KeyError: '[A-Z][A-Z0-9_]+'|\bkey not found: "[A-Z][A-Z0-9_]+"|(?:environment variable|api[ _-]?key|credentials?)\b.{0,60}(?:missing|required|not set|not found|must be set|undefined)|(?:missing|must (?:set|provide)|please (?:set|provide)).{0,60}(?:environment variable|api[ _-]?key|[A-Z]{3,}_[A-Z_]+)|: NotPresent\b|\bsupabase(?:Url|Key) is required/i;

/** Names with an underscore, and quoted ones, in the last line about a missing variable. Codes of errors look the same. */
function listVariables(lines: readonly string[]): string[] {
  const line = lines.findLast((each) => missingVariable.test(each)) ?? '';
  const names = line.matchAll(/["'`]([A-Z][A-Z0-9_]{2,100})["'`]|\b([A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,8})\b/g);
  return [...names]
    .map(([, quoted, plain]) => quoted ?? plain ?? '')
    .filter((name) => !/^(?:ERR|E)_|^PORT$/.test(name));
}

function suggestVariable(lines: readonly string[]): string {
  return `The app requires an environment variable that is not set: set it in run.env of moorage.yaml. If it is a secret, set it with ${describeSecret(listVariables(lines)[0])}, and never commit it. Or make the app start without it, and report what is missing where it is used.`;
}

/** Frameworks that name the key that they miss in their own words. */
export const keyCauses: readonly CrashCause[] = [
  {
    pattern: /No application encryption key has been specified|MissingAppKeyException/,
    fix: 'Laravel has no APP_KEY. Without a Dockerfile, one is made when the app starts; with one, have the start command make it (php artisan key:generate --force, with a file .env), or set it with PUT /api/apps/{slug}/secrets/APP_KEY.',
    variables: () => ['APP_KEY'],
  },
  {
    pattern: /Missing encryption key to decrypt|EncryptedFile::MissingKeyError|MessageEncryptor::InvalidMessage/,
    fix: 'Rails cannot decrypt config/credentials.yml.enc, whose key (config/master.key) is not in the repository: set it with PUT /api/apps/{slug}/secrets/RAILS_MASTER_KEY. Or let the app start without it: remove config.require_master_key, and read keys from variables.',
    variables: () => ['RAILS_MASTER_KEY'],
  },
];

/** Other causes may mention a variable too, so these come after most of them. */
export const variableCauses: readonly CrashCause[] = [
  {
    pattern: /\bOPENAI_(?:API_KEY|BASE_URL|API_BASE)\b/,
    fix: 'The app asks for a key of models: where the operator of this installation lets it call models (spec.models.enabled of its HostedApp), it finds OPENAI_API_KEY and OPENAI_BASE_URL. Or set a key of your own with PUT /api/apps/{slug}/secrets/OPENAI_API_KEY, or make it start without them, and report what is missing where it is used.',
    variables: () => ['OPENAI_API_KEY'],
  },
  {
    pattern: /^\s+Field required\b/,
    isProven: (lines) => lines.some((line) => /validation errors? for .*(?:Settings|Config)/i.test(line)),
    quote: (lines) => `${listFields(lines).join(', ')}: Field required`,
    fix: suggestFields,
    variables: listFieldVariables,
  },
  {
    pattern: missingVariable,
    fix: suggestVariable,
    variables: listVariables,
  },
];
