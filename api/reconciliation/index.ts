// What the rest of the API uses of this room: the records of a day compared with each other.
export { startReconciliation } from './start.ts';
