// Puts the images named by its arguments into the registry of the kind cluster, as `up` does with the usual bases.
import { ensureRegistryImage } from '../../cli/kind/images.ts';

for (const image of process.argv.slice(2)) process.stdout.write(`${image} ${await ensureRegistryImage(image)}\n`);
