// Reads the output of the go command for what it is doing.
import type { Report } from '../steps.ts';

/**
 * Counts the packages of `go build -v`, which prints the import path of each as it begins to compile it. Several calls
 * of the compiler share one count, so a package that the first has compiled is none of the others'.
 */
export function compileProgress(packages: readonly string[], report: Report): (line: string) => void {
  const planned = new Set(packages);
  const begun = new Set<string>();
  report(planned.size === 0 ? 'linking' : `${planned.size} packages to compile`);
  return (line) => {
    if (!planned.has(line)) return;
    begun.add(line);
    const last = begun.size === planned.size ? ', then linking' : '';
    report(`${begun.size} of ${planned.size} packages: ${line}${last}`);
  };
}

/** Names the modules that the go command downloads. */
export function downloadProgress(report: Report): (line: string) => void {
  let count = 0;
  return (line) => {
    const [, module, version] = /^go: downloading (\S+) (\S+)$/.exec(line) ?? [];
    if (module === undefined || version === undefined) return;
    count += 1;
    report(`download ${count}: ${module} ${version}`);
  };
}
