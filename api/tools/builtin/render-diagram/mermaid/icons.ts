// The icons that a Mermaid source names, from the packs of Font Awesome 6 Free.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const pack = z.looseObject({
  icons: z.record(
    z.string(),
    z.object({ body: z.string(), width: z.number().optional(), height: z.number().optional() }),
  ),
  aliases: z.record(z.string(), z.object({ parent: z.string() })).default({}),
  width: z.number().optional(),
  height: z.number().optional(),
});
type Pack = z.output<typeof pack>;

/** As Font Awesome and mermaid's documentation abbreviate them; the first that has the icon gives it. */
const packs: Readonly<Record<string, readonly string[]>> = {
  fa: ['fa6-solid', 'fa6-regular', 'fa6-brands'],
  fas: ['fa6-solid'],
  far: ['fa6-regular'],
  fab: ['fa6-brands'],
};

const read = new Map<string, Pack>();

function packOf(name: string): Pack {
  const known = read.get(name);
  if (known !== undefined) return known;
  const file = fileURLToPath(import.meta.resolve(`@iconify-json/${name}/icons.json`));
  const made = pack.parse(JSON.parse(readFileSync(file, 'utf8')));
  read.set(name, made);
  return made;
}

export interface IconPack {
  readonly prefix: string;
  readonly icons: Readonly<Record<string, { readonly body: string }>>;
}

/** Those that are named alone: a page need not read thousands. */
export function iconsFor(source: string): readonly IconPack[] {
  const wanted = Object.keys(packs).map((prefix) => ({ prefix, icons: new Map<string, Pack['icons'][string]>() }));
  for (const [, prefix = '', name = ''] of source.matchAll(/\b(fa[srb]?):(?:fa-)?([a-z0-9][a-z0-9-]*)/g)) {
    const icon = iconOf(packs[prefix] ?? [], name);
    if (icon === undefined) continue;
    // In labels mermaid takes fa-car from fa:fa-car, elsewhere it does not.
    const into = wanted.find((each) => each.prefix === prefix)?.icons;
    into?.set(name, icon).set(`fa-${name}`, icon);
  }
  return wanted.map(({ prefix, icons }) => ({ prefix, icons: Object.fromEntries(icons) }));
}

function iconOf(names: readonly string[], name: string): Pack['icons'][string] | undefined {
  for (const each of names) {
    const { icons, aliases, width, height } = packOf(each);
    const icon = icons[name] ?? icons[aliases[name]?.parent ?? ''];
    if (icon !== undefined) return { width, height, ...icon };
  }
  return undefined;
}
