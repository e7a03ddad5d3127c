// git as Moorage uses it on repositories of unknown origin: hardened, within bounds, by simple-git.
export { createGit, type Git, type GitOptions, type GitResult, type GitRunOptions } from './git.ts';
export { credentialFor, isCommitId, listReferences, type References } from './references.ts';
export {
  lookupClient,
  lookupListener,
  lookupPath,
  type LookupAnswer,
  type LookupClientOptions,
  type LookupListenerOptions,
} from './lookup.ts';
