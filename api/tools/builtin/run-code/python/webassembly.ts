// What is used here of WebAssembly, which TypeScript only knows together with all of the browser.

export interface Memory {
  /** Another one after it has grown. */
  readonly buffer: ArrayBuffer;
}

/** Compiled code; may be sent to a thread. */
export interface Module {
  readonly [Symbol.toStringTag]: 'WebAssembly.Module';
}

export type Imports = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

interface Api {
  compile(bytes: Uint8Array): Promise<Module>;
  instantiate(module: Module, imports: Imports): Promise<{ readonly exports: Readonly<Record<string, unknown>> }>;
  readonly Module: { imports(module: Module): readonly { readonly name: string }[] };
}

export const webAssembly = (globalThis as unknown as { readonly WebAssembly: Api }).WebAssembly;
