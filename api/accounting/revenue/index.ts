// What the rest of the API uses of this room: what authors earn, and how they read and dispute it.
export { bindAuthor, readRevenueSettings, type RevenueSettings } from './shares.ts';
export { provenStatement, type StatementView } from './statement.ts';
export { authorView } from './author-endpoints.ts';
export { priceListView, type PriceListView } from './prices.ts';
export { type Revenue, startRevenue } from './start-revenue.ts';
