// Measures the width and height of a picture. Runs in a worker process.
import { openImage } from '../convert-image/open-image.ts';

export default async function run({ bytes }: { bytes: Uint8Array }): Promise<{ width: number; height: number }> {
  const { width, height } = await openImage(bytes);
  return { width, height };
}
