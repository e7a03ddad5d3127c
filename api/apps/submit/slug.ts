// Candidates for the name of the app of a repository, the best one first.
import { isCatalogSlug, toDnsLabel, isReserved } from '../../../crds/names.ts';
import { repositoryHash, type Repository } from '../../../lib/repository.ts';

/**
 * Names to try in this order: the repository's own, owner and name, the name with a hash that no other repository has.
 * Each is a DNS label of at most 40 characters that starts with a letter, is not reserved and stands for no app of the
 * catalog.
 */
export function slugCandidates(repository: Repository): readonly string[] {
  const { owner, name, url } = repository;
  const base = lettered(toDnsLabel(name)) || 'app';
  const hashed = `${base.slice(0, 31).replace(/-+$/, '')}-${repositoryHash(url).slice(0, 8)}`;
  const candidates = [lettered(toDnsLabel(name)), lettered(toDnsLabel(`${owner}-${name}`)), hashed];
  return [...new Set(candidates)].filter((slug) => slug !== '' && !isReserved(slug) && !isCatalogSlug(slug));
}

/** Some of what is named after an app (its Service) must start with a letter. */
function lettered(label: string): string {
  return /^[0-9]/.test(label) ? toDnsLabel(`app-${label}`) : label;
}
