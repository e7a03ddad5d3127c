// What the wiring uses of this room: the pages that people see.
export { type Pages, type PagesOptions, startPages } from './pages.ts';
