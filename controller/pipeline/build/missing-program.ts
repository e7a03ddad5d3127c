// Names the program that a step called in vain (exit code 127): whose script called it, and which package brings it.

/** Programs of npm whose package has another name. */
const packages: Readonly<Record<string, string>> = {
  tsc: 'typescript',
  nest: '@nestjs/cli',
  ng: '@angular/cli',
  'vue-cli-service': '@vue/cli-service',
  'run-s': 'npm-run-all',
  'run-p': 'npm-run-all',
  webpack: 'webpack-cli',
  nuxi: 'nuxt',
  'svelte-kit': '@sveltejs/kit',
  tailwindcss: '@tailwindcss/cli',
  sass: 'sass',
  remix: '@remix-run/dev',
  'react-router': '@react-router/dev',
  docusaurus: '@docusaurus/core',
  eleventy: '@11ty/eleventy',
  babel: '@babel/cli',
  swc: '@swc/cli',
  lingui: '@lingui/cli',
  'graphql-codegen': '@graphql-codegen/cli',
  changeset: '@changesets/cli',
};
/** Programs of npm whose package has the same name. */
const sameName =
  /^(?:vite|next|astro|gatsby|tsx|ts-node|tsup|rimraf|cross-env|prisma|turbo|nx|husky|patch-package|concurrently|esbuild|rollup|react-scripts|nodemon|rspack|rsbuild|shx|dotenv|drizzle-kit|eslint|prettier|lerna|vitest|only-allow|parcel|serve|pm2|unbuild|wrangler|contentlayer|velite|simple-git-hooks|lefthook|electron-builder|craco|react-app-rewired|typedoc|panda|pnpm|yarn|bun)$/;
const missing: readonly RegExp[] = [
  /^(?:\/?\S{0,40}\/)?(?:sh|bash|dash|ash): (?:(?:line )?\d{1,5}: )?([\w.@/+-]{1,80}): (?:command )?not found$/,
  /\bcommand not found: ([\w.@/+-]{1,80})$/,
  /^(?:\/?\S{0,40}\/)?env: [‘'"]?([\w.@/+-]{1,80})[’'"]?: No such file or directory$/,
];

export interface MissingProgram {
  readonly line: string;
  readonly program: string;
  /** npm package that brings it; undefined when none is known. */
  readonly package: string | undefined;
  /** The script that called it, in words: script "build" of the package web. */
  readonly caller: string | undefined;
}

/** The program that was not found; undefined when the log names none. */
export function missingProgram(lines: readonly string[]): MissingProgram | undefined {
  for (const [index, line] of lines.entries()) {
    const program = missing.map((each) => each.exec(line.trim())?.[1]).find((found) => found !== undefined);
    if (program === undefined) continue;
    const brought = Object.hasOwn(packages, program) ? packages[program] : undefined;
    return {
      line: line.trim(),
      program,
      package: brought ?? (sameName.test(program) ? program : undefined),
      caller: callerOf(lines, index),
    };
  }
  return undefined;
}

/** npm and pnpm print "> name@version script" before a script, and the folder of a package whose install script failed. */
function callerOf(lines: readonly string[], index: number): string | undefined {
  const folder = lines
    .slice(index - 12 < 0 ? 0 : index - 12, index + 12)
    .map(
      (line) =>
        /^npm (?:ERR!|error) path \S{0,300}\/node_modules\/((?:@[\w.-]{1,80}\/)?[\w.-]{1,80})$/.exec(line.trim())?.[1],
    )
    .find((found) => found !== undefined);
  if (folder !== undefined) return `the install script of the package ${folder}`;
  const script = lines.slice(0, index).findLast((line) => header.test(line.trim()));
  const [, name, word] = header.exec(script?.trim() ?? '') ?? [];
  return name === undefined || word === undefined ? undefined : `the script "${word}" of the package ${name}`;
}

const header = /^> ((?:@[\w.-]{1,80}\/)?[\w.-]{1,80})@\S{0,60} ([\w:.-]{1,60})(?: \/\S{0,300})?$/;
