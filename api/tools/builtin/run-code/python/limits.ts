// Limits that the caller of the worker and the worker itself have to know.

/** Memory of the interpreter. */
export const pythonMb = 128;
/** Of its process, with the thread around the interpreter and the compiled code. */
export const processMb = 256;
