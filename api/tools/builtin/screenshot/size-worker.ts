// Run by Workers: the width and height of a picture.
import { openImage } from '../convert-image/open-image.ts';

export default async function run({ bytes }: { bytes: Uint8Array }): Promise<{ width: number; height: number }> {
  const { width, height } = await openImage(bytes);
  return { width, height };
}
