// What the rest of the API uses of this room: what authors earn, and how they read and dispute it.
export { bindAuthor, readRevenueSettings, type RevenueSettings } from './shares.ts';
export { type StatementView, statementView } from './statement.ts';
export { type Revenue, startRevenue } from './start-revenue.ts';
