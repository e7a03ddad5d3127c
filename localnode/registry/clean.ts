// Cleans the storage folder named by its argument. Reads the digests in use from standard input, and prints the number
// of removed images.
import { text } from 'node:stream/consumers';
import { graceMs, extractNames, removeUnused } from './storage.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('name the root directory of the registry');
process.stdout.write(`${await removeUnused(folder, extractNames(await text(process.stdin)), Date.now() - graceMs)}\n`);
