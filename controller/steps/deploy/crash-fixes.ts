// What an author can do about an app that crashes, guessed from its last lines.

/** The first that matches counts, so the more telling ones come first. */
const fixes: readonly (readonly [RegExp, string])[] = [
  [
    /ModuleNotFoundError|ImportError: No module|Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND/,
    'A package or file that the code imports is not in the image: add it to the list of packages, or commit the file; what the app needs when it runs must not be a development package.',
  ],
  [
    /EACCES|PermissionError|Permission denied|Read-only file system|EROFS/i,
    'The app runs as an ordinary user, who may write in its own folder, its home and /tmp only: write there, or on a volume (run.volumes in moorage.yaml).',
  ],
  [/EADDRINUSE|Address already in use/i, 'Two parts of the app listen on one port: start one server, on $PORT.'],
  [
    /(?:ECONNREFUSED|Connection refused|could not (?:connect|translate)|ENOTFOUND|Name or service not known|getaddrinfo)/i,
    'The app wants a server that it does not reach, such as a database: name one on the public internet in run.env of moorage.yaml (its password, a secret, only whoever runs this installation can set), keep data in a file on a volume (run.volumes there), or start without it.',
  ],
  [
    /KeyError: '[A-Z][A-Z0-9_]+'|(?:environment variable|api[ _-]?key|credentials?)\b.{0,60}(?:missing|required|not set|not found|must be set|undefined)|(?:missing|must (?:set|provide)|please (?:set|provide)).{0,60}(?:environment variable|api[ _-]?key|[A-Z]{3,}_[A-Z_]+)/i,
    'The app wants a variable that it is not given: set it in run.env of moorage.yaml. Where it is a secret, only whoever runs this installation can set it (never put it into the repository): start without it, and say what is missing where it is used.',
  ],
];
const otherwise =
  'Run the image with the same variables and look at the last lines of its log; missing configuration and missing packages are the usual causes.';
const mostRead = 4_096;

/** A guess at the fix. @param log last lines that the app wrote */
export function suggestCrashFix(log: string): string {
  const lines = log.slice(-mostRead).split('\n');
  return fixes.find(([pattern]) => lines.some((line) => pattern.test(line)))?.[1] ?? otherwise;
}
