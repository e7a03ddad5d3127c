// An app that sets cookies for every domain above itself and above the API, by its answer and by a script.

const attributes = ['', '; Secure', '; SameSite=None; Secure', '; Path=/api'];

/** Each suffix of the two host names, which is where a cookie could be shared. */
export function domainsAbove(...hosts: readonly string[]): string[] {
  const above = hosts.flatMap((host) => host.split('.').map((_label, index, labels) => labels.slice(index).join('.')));
  return [...new Set(above)];
}

/** The cookies as an attacker writes them; each has a name of its own. */
export function hostileCookies(...hosts: readonly string[]): string[] {
  return domainsAbove(...hosts).flatMap((domain, index) =>
    attributes.map((attribute, number) => `toss_${index}_${number}=1; Domain=${domain}; Path=/${attribute}`),
  );
}

/** A page that sets them once more by script. */
export function hostilePage(cookies: readonly string[]): string {
  const scripted = cookies.map((cookie) => cookie.replace('toss_', 'script_'));
  return `<!doctype html><title>hostile</title><script>for (const one of ${JSON.stringify(scripted)}) document.cookie = one;</script>`;
}
