// How far the shipper has come, in a file beside the log: written whole or not at all, and only after an acknowledgement.
import { randomUUID } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { z } from 'zod';

const mark = z.object({ counter: z.string(), startNs: z.string(), endNs: z.string() });

const position = z.object({
  /** Names this log for good, so that its records have the same ids whichever pod sends them. */
  gateway: z.string(),
  /** The file that is being read, and the bytes of it that need not be read again. */
  inode: z.string().nullable(),
  offset: z.number(),
  /** The newest record of each run of which records were dropped and the receiver does not know yet. */
  dropped: z.array(mark),
});

/** The newest record of those that were dropped, numbers as text. */
export type Mark = z.output<typeof mark>;
export type Position = z.output<typeof position>;

/** Reads the position, or makes one that begins at the first record. @throws Error when the file cannot be read */
export async function readPosition(file: string): Promise<Position> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text !== undefined) return position.parse(JSON.parse(text));
  const first: Position = { gateway: randomUUID(), inode: null, offset: 0, dropped: [] };
  await writePosition(file, first);
  return first;
}

export async function writePosition(file: string, value: Position): Promise<void> {
  const draft = `${file}.draft`;
  const handle = await open(draft, 'w', 0o644);
  try {
    await handle.writeFile(JSON.stringify(value));
    // Without it, a crash of the machine could leave an empty file under the name: another gateway, all sent twice.
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
}
