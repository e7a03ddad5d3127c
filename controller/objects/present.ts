// Where manifests and status leave out fields without a value: the function of all programs, under its old address.
export { present, type Present } from '../../lib/values.ts';
