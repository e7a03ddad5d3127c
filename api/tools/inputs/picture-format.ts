// The field by which a caller chooses a picture format: jpg is another name of jpeg.
import { z } from 'zod';

type WithJpg<Format extends string> = Format | 'jpg';

/** `formats` with jpg beside them, which is read as jpeg. */
export function pictureFormat<const Formats extends readonly [string, ...string[]]>(
  formats: Formats,
): z.ZodType<Formats[number], WithJpg<Formats[number]>> {
  const names: readonly WithJpg<Formats[number]>[] = [...formats, 'jpg'];
  return z.enum(names).transform((name): Formats[number] => (name === 'jpg' ? 'jpeg' : name));
}
