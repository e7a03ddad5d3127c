// What the rest of the API uses of this room: what authors earn, and how they read and dispute it.
export { type RevenueSettings, readRevenueSettings } from './config.ts';
export { type StatementView, statementView } from './statement/view.ts';
export { bindAuthor } from './shares.ts';
export { type Revenue, startRevenue } from './start.ts';
