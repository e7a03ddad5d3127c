// Knows which packages bring torch. Its default wheels hold CUDA, several GB that no CPU uses.
const bringing: ReadonlySet<string> = new Set([
  'torch',
  'torchvision',
  'torchaudio',
  'sentence-transformers',
  'openai-whisper',
  'easyocr',
  'ultralytics',
  'accelerate',
  'timm',
  'docling',
  'peft',
  'lightning',
  'pytorch-lightning',
  'demucs',
  'marker-pdf',
]);

/** The package that brings torch; undefined when none is known to. */
export function bringsTorch(names: Iterable<string>): string | undefined {
  return [...names].find((name) => bringing.has(name));
}
